-- The newest samples of each of these slots, newest first.
select
    s.at, s.slot, s.own, s.slot_type, s.database, s.active, s.confirmed_lsn, s.restart_lsn, s.flushed_lsn, s.unread,
    s.retained, s.wal_status, s.safe_wal_size, s.invalidation, s.inactive_since, s.unchanged_since, s.catalog_xmin_age,
    s.spill_bytes, s.total_bytes, s.details
from unnest(%(slots)s::text[]) as wanted (slot)
cross join lateral (
    select * from penstock.slot_sample as each
    where each.pipeline = %(name)s and each.slot = wanted.slot and (%(since)s::timestamptz is null or each.at >= %(since)s)
    order by each.at desc
    limit %(limit)s
) as s
order by s.slot, s.at desc
