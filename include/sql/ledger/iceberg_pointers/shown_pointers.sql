select table_namespace, table_name, metadata_location
from iceberg_tables
where
    catalog_name = %(catalog)s
    and (table_namespace, table_name) in (select * from unnest(%(namespaces)s::text[], %(tables)s::text[]))
