insert into penstock.event (pipeline, slug, level, table_oid, message, details)
select %(name)s, %(slug)s, 'info', c.oid, c.message, c.details
from jsonb_to_recordset(%(changes)s) as c (oid oid, message text, details jsonb)
