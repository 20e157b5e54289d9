update penstock.load as l
set
    through_lsn = s.through_lsn, snapshot_id = s.snapshot_id, built_rows = l.built_rows + s.rows, state = s.state, run = null,
    update_missing = l.update_missing + s.update_missing, delete_missing = l.delete_missing + s.delete_missing,
    insert_existing = l.insert_existing + s.insert_existing, misfits = l.misfits + s.misfits,
    changed_at = clock_timestamp(), finished_at = case s.state when 'done' then clock_timestamp() end
from jsonb_to_recordset(%(steps)s) as s (
    id text, through_lsn pg_lsn, snapshot_id bigint, rows bigint, state text,
    update_missing bigint, delete_missing bigint, insert_existing bigint, misfits bigint
)
where l.pipeline = %(name)s and l.id = s.id and l.state = 'building' and l.run = %(run)s
