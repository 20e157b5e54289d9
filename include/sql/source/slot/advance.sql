select end_lsn::text from pg_replication_slot_advance({slot}, {lsn}::pg_lsn)
