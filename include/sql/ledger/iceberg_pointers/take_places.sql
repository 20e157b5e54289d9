update iceberg_tables as t
set
    table_namespace = p.namespace, table_name = p.name,
    metadata_location = p.new, previous_metadata_location = p.location
from
    unnest(
        %(namespaces)s::text[], %(tables)s::text[], %(news)s::text[],
        %(fresh_namespaces)s::text[], %(fresh_tables)s::text[], %(locations)s::text[]
    )
    as p (namespace, name, new, fresh_namespace, fresh_name, location)
where
    t.catalog_name = %(catalog)s and t.table_namespace = p.fresh_namespace and t.table_name = p.fresh_name
    and t.metadata_location = p.location
