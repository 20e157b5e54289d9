-- All of them, or those of these names.
select table_namespace, table_name, metadata_location
from iceberg_tables
where
    catalog_name = %(catalog)s and metadata_location is not null
    and (
        %(namespaces)s::text[] is null
        or (table_namespace, table_name) in (select * from unnest(%(namespaces)s::text[], %(tables)s::text[]))
    )
order by table_namespace, table_name
