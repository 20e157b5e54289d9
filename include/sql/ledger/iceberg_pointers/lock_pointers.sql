-- In one order for everybody, so that two publishers cannot wait for each other.
select table_namespace, table_name, metadata_location
from iceberg_tables
where
    catalog_name = %(catalog)s
    and (table_namespace, table_name) in (select * from unnest(%(namespaces)s::text[], %(tables)s::text[]))
order by table_namespace, table_name
for update
