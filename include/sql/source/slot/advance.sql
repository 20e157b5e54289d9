select end_lsn from pg_replication_slot_advance(%(slot)s, %(lsn)s)
