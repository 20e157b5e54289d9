delete from penstock.relation_attnums where pipeline = %(name)s
