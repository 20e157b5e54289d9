-- For this session only.
select from pg_copy_logical_replication_slot(%(slot)s, %(copy)s, true)
