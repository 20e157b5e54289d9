select after from penstock.copy_due where pipeline = %(name)s and id = %(id)s and oid = %(oid)s
