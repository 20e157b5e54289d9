-- What a copy brings is counted from the copy on.
update penstock.table as t
set
    state = case when t.left_lsn <= %(lsn)s then 'dropped' else 'ready' end,
    complete_through = least(%(lsn)s, t.left_lsn), snapshot_id = coalesce(p.snapshot_id, t.snapshot_id),
    shows = coalesce(p.shows, t.shows), lake_columns = coalesce(p.columns, t.lake_columns),
    update_missing = case when p.copy_id is null then t.update_missing else 0 end + p.update_missing,
    delete_missing = case when p.copy_id is null then t.delete_missing else 0 end + p.delete_missing,
    insert_existing = case when p.copy_id is null then t.insert_existing else 0 end + p.insert_existing,
    misfits = case when p.copy_id is null then t.misfits else 0 end + p.misfits,
    conflict_lsn = case
        when p.update_missing + p.delete_missing + p.insert_existing > 0 then %(lsn)s
        when p.copy_id is null then t.conflict_lsn
    end
from jsonb_to_recordset(%(tables)s) as p (
    oid oid, snapshot_id bigint, copy_id text, shows text, columns text,
    update_missing bigint, delete_missing bigint, insert_existing bigint, misfits bigint
)
where
    t.pipeline = %(name)s and t.oid = p.oid
    and case t.state
        when 'ready' then p.copy_id is null and t.complete_through <= %(lsn)s
        when 'copied' then p.copy_id = t.copy_id and exists (
            select from penstock.load as l
            where
                l.pipeline = t.pipeline and l.copy_id = t.copy_id and l.oid = t.oid and l.cause = 'first'
                and l.lsn <= %(lsn)s
        )
        else false
    end
returning t.oid
