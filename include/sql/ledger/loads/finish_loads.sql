update penstock.load as l
set state = 'done', finished_at = clock_timestamp(), changed_at = clock_timestamp()
from jsonb_to_recordset(%(tables)s) as p (oid oid, copy_id text)
where l.pipeline = %(name)s and l.oid = p.oid and l.copy_id = p.copy_id and l.cause = 'first' and l.state = 'landed'
