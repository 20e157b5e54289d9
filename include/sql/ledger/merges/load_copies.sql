update penstock.copy as c
set state = 'loaded'
from jsonb_to_recordset(%(tables)s) as p (oid oid, copy_id text)
where c.pipeline = %(name)s and c.oid = p.oid and c.id = p.copy_id and c.state = 'copied'
