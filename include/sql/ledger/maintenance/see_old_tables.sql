insert into penstock.old_table (pipeline, namespace, name, location)
select %(name)s, o.namespace, o.name, o.location
from jsonb_to_recordset(%(tables)s) as o (namespace text, name text, location text)
on conflict (pipeline, namespace, name) do nothing
