-- What an earlier try at the same copy had not finished is forgotten.
update penstock.load as l
set
    copy_id = %(copy_id)s, snapshot = %(snapshot)s, lsn = %(lsn)s,
    needs_after = penstock.needed_after(%(name)s, %(snapshot)s), attnums = penstock.attnums(f.columns),
    files = '[]', rows = 0, bytes = 0, copy_started_at = clock_timestamp(), copied_at = null,
    schema = f.schema, name = f.name, target = f.target, place = f.place, identity = f.identity, columns = f.columns,
    accepted = f.accepted, through_lsn = null, snapshot_id = null, run = null, built_rows = 0,
    changed_at = clock_timestamp()
from jsonb_to_recordset(%(loads)s) as f (
    id text, schema text, name text, target text[], place text[], identity text, columns jsonb, accepted jsonb
)
where l.pipeline = %(name)s and l.id = f.id and l.cause = 'resync' and l.state = 'copying'
