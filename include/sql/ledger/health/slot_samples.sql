-- The history of one slot, newest first.
select
    at, slot, own, slot_type, database, active, confirmed_lsn, restart_lsn, flushed_lsn, unread, retained, wal_status,
    safe_wal_size, invalidation, inactive_since, unchanged_since, catalog_xmin_age, spill_bytes, total_bytes, details
from penstock.slot_sample
where pipeline = %(name)s and slot = %(slot)s and (%(since)s::timestamptz is null or at >= %(since)s)
order by at desc
limit %(limit)s
