-- A rebuild's copy is its own.
delete from penstock.copy as c
where
    c.pipeline = %(name)s and c.oid = any(%(oids)s::oid[]) and c.state <> 'loaded' and c.id <> %(copy_id)s
    and not exists (
        select from penstock.rebuild as r
        where r.pipeline = c.pipeline and r.copy_id = c.id and r.oid = c.oid and r.state in ('copying', 'building', 'ready')
    )
