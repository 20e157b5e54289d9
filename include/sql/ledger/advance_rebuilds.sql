update penstock.rebuild as r
set
    through_lsn = s.through_lsn, snapshot_id = s.snapshot_id, rows = r.rows + s.rows, state = s.state, run = null,
    changed_at = clock_timestamp(), finished_at = case s.state when 'done' then clock_timestamp() end
from jsonb_to_recordset(%(steps)s) as s (id text, through_lsn pg_lsn, snapshot_id bigint, rows bigint, state text)
where r.pipeline = %(name)s and r.id = s.id and r.state = 'building' and r.run = %(run)s
