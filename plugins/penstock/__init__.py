"""Penstock takes the changes of a PostgreSQL database from a replication slot into Iceberg tables, in bounded batches."""

__version__ = "0.1.0.dev0"
