delete from penstock.old_table as t
using jsonb_to_recordset(%(tables)s) as o (namespace text, "table" text)
where t.pipeline = %(name)s and t.namespace = o.namespace and t.name = o."table"
