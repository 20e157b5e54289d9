insert into penstock.slot_sample
    (pipeline, confirmed_lsn, restart_lsn, flushed_lsn, wal_status, safe_wal_size, active, details)
values
    (
        %(name)s, %(confirmed_lsn)s, %(restart_lsn)s, %(flushed_lsn)s, %(wal_status)s, %(safe_wal_size)s,
        %(active)s, %(details)s
    )
