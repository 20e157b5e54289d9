"""Penstock takes the changes of a PostgreSQL database from a replication slot into Iceberg tables, in bounded batches."""
