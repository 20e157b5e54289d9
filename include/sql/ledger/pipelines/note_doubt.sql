update penstock.pipeline set doubted_from = %(lsn)s where name = %(name)s
