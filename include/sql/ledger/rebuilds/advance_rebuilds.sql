update penstock.rebuild as r
set
    through_lsn = s.through_lsn, snapshot_id = s.snapshot_id, rows = r.rows + s.rows, state = s.state, run = null,
    update_missing = r.update_missing + s.update_missing, delete_missing = r.delete_missing + s.delete_missing,
    insert_existing = r.insert_existing + s.insert_existing, misfits = r.misfits + s.misfits,
    changed_at = clock_timestamp(), finished_at = case s.state when 'done' then clock_timestamp() end
from jsonb_to_recordset(%(steps)s) as s (
    id text, through_lsn pg_lsn, snapshot_id bigint, rows bigint, state text,
    update_missing bigint, delete_missing bigint, insert_existing bigint, misfits bigint
)
where r.pipeline = %(name)s and r.id = s.id and r.state = 'building' and r.run = %(run)s
