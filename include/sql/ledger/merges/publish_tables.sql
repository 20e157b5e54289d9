update penstock.table as t
set
    state = case when t.left_lsn <= %(lsn)s then 'dropped' else 'ready' end,
    complete_through = least(%(lsn)s, t.left_lsn), snapshot_id = coalesce(p.snapshot_id, t.snapshot_id),
    shows = coalesce(p.shows, t.shows), lake_columns = coalesce(p.columns, t.lake_columns),
    update_missing = t.update_missing + p.update_missing, delete_missing = t.delete_missing + p.delete_missing,
    insert_existing = t.insert_existing + p.insert_existing, misfits = t.misfits + p.misfits,
    conflict_lsn = case
        when p.update_missing + p.delete_missing + p.insert_existing > 0 then %(lsn)s else t.conflict_lsn
    end
from jsonb_to_recordset(%(tables)s) as p (
    oid oid, snapshot_id bigint, shows text, columns text,
    update_missing bigint, delete_missing bigint, insert_existing bigint, misfits bigint
)
where t.pipeline = %(name)s and t.oid = p.oid and t.state = 'ready' and t.complete_through <= %(lsn)s
returning t.oid
