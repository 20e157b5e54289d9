-- The newest look at each own slot: one short walk down the index per slot.
select
    p.name as pipeline, s.at, s.slot, s.active, s.confirmed_lsn, s.restart_lsn, s.flushed_lsn, s.unread, s.retained,
    s.wal_status, s.safe_wal_size, s.invalidation, s.inactive_since, s.unchanged_since, s.catalog_xmin_age,
    s.spill_bytes, s.total_bytes, s.details
from penstock.pipeline as p
cross join lateral (
    select *
    from penstock.slot_sample as s
    where s.pipeline = p.name and s.slot = p.slot and s.own
    order by s.at desc, s.number desc
    limit 1
) as s
where %(name)s::text is null or p.name = %(name)s
