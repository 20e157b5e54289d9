delete from penstock.column_fetch where pipeline = %(name)s and oid = any(%(oids)s) and state = 'copying'
