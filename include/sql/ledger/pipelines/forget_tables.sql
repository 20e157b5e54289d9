-- Their copies go with them. What the lake holds stays, and the cuts say what it is.
delete from penstock.table where pipeline = %(name)s
