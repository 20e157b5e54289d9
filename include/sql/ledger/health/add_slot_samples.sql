insert into penstock.slot_sample
    (
        pipeline, at, slot, own, slot_type, database, active, confirmed_lsn, restart_lsn, flushed_lsn, unread, retained,
        wal_status, safe_wal_size, invalidation, inactive_since, unchanged_since, catalog_xmin_age, spill_bytes,
        total_bytes, details
    )
select
    %(name)s, at, slot, own, slot_type, database, active, confirmed_lsn, restart_lsn, flushed_lsn, unread, retained,
    wal_status, safe_wal_size, invalidation, inactive_since, unchanged_since, catalog_xmin_age, spill_bytes,
    total_bytes, details
from jsonb_populate_recordset(null::penstock.slot_sample, %(samples)s)
