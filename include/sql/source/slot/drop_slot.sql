select pg_drop_replication_slot(%(slot)s)
