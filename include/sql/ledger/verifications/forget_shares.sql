delete from penstock.key_share where pipeline = %(name)s and oid = %(oid)s
