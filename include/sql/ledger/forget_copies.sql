delete from penstock.copy where pipeline = %(name)s
