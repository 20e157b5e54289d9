update penstock.pipeline set publishing = %(publishing)s where name = %(name)s
