delete from penstock.copy as c
using penstock.table as t
where
    t.pipeline = %(name)s and t.oid = %(oid)s and t.state = 'dropped'
    and c.pipeline = t.pipeline and c.oid = t.oid and c.state <> 'loaded'
