delete from penstock.column_look where pipeline = %(name)s
