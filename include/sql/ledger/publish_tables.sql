update penstock.table as t
set
    state = case when t.left_lsn <= %(lsn)s then 'dropped' else 'ready' end,
    complete_through = least(%(lsn)s, t.left_lsn), snapshot_id = coalesce(p.snapshot_id, t.snapshot_id)
from jsonb_to_recordset(%(tables)s) as p (oid oid, snapshot_id bigint, copy_id text)
where
    t.pipeline = %(name)s and t.oid = p.oid
    and case t.state
        when 'ready' then p.copy_id is null and t.complete_through <= %(lsn)s
        when 'copied' then p.copy_id = t.copy_id and exists (
            select from penstock.copy as c
            where c.pipeline = t.pipeline and c.id = t.copy_id and c.oid = t.oid and c.lsn <= %(lsn)s
        )
        else false
    end
returning t.oid
