select end_lsn::text from pg_replication_slot_advance({copy}, {position}::pg_lsn)
