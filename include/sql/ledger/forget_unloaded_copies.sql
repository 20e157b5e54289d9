delete from penstock.copy
where pipeline = %(name)s and oid = any(%(oids)s::oid[]) and state <> 'loaded' and id <> %(copy_id)s
