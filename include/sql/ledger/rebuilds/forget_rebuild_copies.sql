delete from penstock.copy as c
using penstock.rebuild as r
where
    r.pipeline = %(name)s and r.id = any(%(ids)s) and r.kind = 'resync' and r.state = 'copying'
    and c.pipeline = r.pipeline and c.id = r.copy_id and c.oid = r.oid and c.state <> 'loaded'
