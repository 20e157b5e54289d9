-- No replay may begin with a copy from before the changes that are in no window; a shadow that is being built continues.
delete from penstock.copy as c
where
    c.pipeline = %(name)s and c.oid = any(%(oids)s::oid[]) and c.state = 'loaded'
    and not exists (
        select from penstock.rebuild as r
        where r.pipeline = c.pipeline and r.copy_id = c.id and r.oid = c.oid and r.state in ('copying', 'building', 'ready')
    )
