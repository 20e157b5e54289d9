select from_lsn, upto_lsn, attempt from penstock.window where pipeline = %(name)s
