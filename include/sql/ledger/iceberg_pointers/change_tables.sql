-- A row takes its new name, and its `new` metadata file where there is one; one that must show a file changes only if it does.
update iceberg_tables as t
set
    table_namespace = c.to_namespace, table_name = c.to_name, metadata_location = coalesce(c.new, t.metadata_location),
    previous_metadata_location = case when c.new is null then t.previous_metadata_location else c.shown end
from jsonb_to_recordset(%(changes)s) as c (
    namespace text, name text, to_namespace text, to_name text, shown text, new text
)
where
    t.catalog_name = %(catalog)s and t.table_namespace = c.namespace and t.table_name = c.name
    and (c.shown is null or t.metadata_location = c.shown)
