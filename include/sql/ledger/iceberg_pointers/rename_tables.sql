-- One that must show an `old` metadata file takes its new name only if it does.
update iceberg_tables as t
set table_namespace = p.new_namespace, table_name = p.new_name
from
    unnest(%(namespaces)s::text[], %(tables)s::text[], %(olds)s::text[], %(new_namespaces)s::text[], %(new_tables)s::text[])
    as p (namespace, name, old, new_namespace, new_name)
where
    t.catalog_name = %(catalog)s and t.table_namespace = p.namespace and t.table_name = p.name
    and (p.old is null or t.metadata_location = p.old)
