update penstock.key_share set verified_lsn = null where pipeline = %(name)s and oid = %(oid)s
