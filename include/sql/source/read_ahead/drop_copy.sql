select 1 from pg_drop_replication_slot({copy})
