-- A table that a fresh one replaces stays under another name.
update iceberg_tables as t
set table_namespace = p.kept_namespace, table_name = p.kept_name
from
    unnest(%(namespaces)s::text[], %(tables)s::text[], %(olds)s::text[], %(kept_namespaces)s::text[], %(kept_tables)s::text[])
    as p (namespace, name, old, kept_namespace, kept_name)
where
    t.catalog_name = %(catalog)s and t.table_namespace = p.namespace and t.table_name = p.name
    and t.metadata_location = p.old
