select table_namespace, table_name, metadata_location
from iceberg_tables
where catalog_name = %(catalog)s and metadata_location is not null
order by table_namespace, table_name
