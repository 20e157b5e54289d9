-- A table that was renamed again since this merge was planned takes its newer name in the next cut.
update penstock.table as t
set target = r."to", renamed_to = nullif(coalesce(t.renamed_to, t.target), r."to")
from jsonb_to_recordset(%(renames)s) as r (oid oid, target text[], "to" text[])
where t.pipeline = %(name)s and t.oid = r.oid and t.target = r.target
