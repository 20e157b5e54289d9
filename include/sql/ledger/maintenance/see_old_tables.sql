insert into penstock.old_table (pipeline, namespace, name, location)
select %(name)s, o.namespace, o."table", o.folder
from jsonb_to_recordset(%(tables)s) as o (namespace text, "table" text, folder text)
on conflict (pipeline, namespace, name) do nothing
