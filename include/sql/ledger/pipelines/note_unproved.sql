update penstock.pipeline set unproved_from = %(lsn)s where name = %(name)s
