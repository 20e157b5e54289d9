-- A loaded copy is of use while it is its table's newest and no window since its snapshot is gone; an older one for a
-- while. A copy that is not loaded is of use to its table, or to an open rebuild. `max_xid` is that of the windows just
-- forgotten.
delete from penstock.copy as c
using penstock.table as t
where
    c.pipeline = %(name)s and t.pipeline = c.pipeline and t.oid = c.oid
    and not exists (
        select from penstock.rebuild as r
        where r.pipeline = c.pipeline and r.copy_id = c.id and r.oid = c.oid and r.state in ('copying', 'building', 'ready')
    )
    and case
        when c.state = 'loaded' then
            split_part(c.snapshot, ':', 1)::bigint <= %(max_xid)s
            or t.state = 'dropped'
            or (c.id is distinct from t.copy_id and c.finished_at < %(before)s)
        else c.id is distinct from t.copy_id and c.started_at < %(before)s
    end
returning c.id, c.oid, c.bytes
