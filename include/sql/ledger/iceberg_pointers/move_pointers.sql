update iceberg_tables as t
set metadata_location = p.new, previous_metadata_location = p.old
from unnest(%(namespaces)s::text[], %(tables)s::text[], %(olds)s::text[], %(news)s::text[]) as p (namespace, name, old, new)
where
    t.catalog_name = %(catalog)s and t.table_namespace = p.namespace and t.table_name = p.name
    and t.metadata_location = p.old
