-- The newest look at each own slot, with the limits that were in force then: one short walk down the index per slot. Bytes are of the
-- source's WAL, ages in transactions.
select
    p.name as pipeline, s.at as seen_at, s.unread as unread_bytes, s.retained as retained_bytes,
    trunc((s.details #>> '{limits,warn}')::numeric)::bigint as warn_bytes,
    trunc((s.details #>> '{limits,critical}')::numeric)::bigint as critical_bytes,
    trunc((s.details #>> '{limits,drop}')::numeric)::bigint as drop_bytes,
    s.wal_status, s.invalidation, s.safe_wal_size as safe_wal_bytes, s.active, s.inactive_since, s.unchanged_since,
    s.catalog_xmin_age, s.spill_bytes / nullif(s.total_bytes, 0)::float8 as spill_share, s.confirmed_lsn, s.restart_lsn, s.flushed_lsn
from penstock.pipeline as p
cross join lateral (
    select *
    from penstock.slot_sample as s
    where s.pipeline = p.name and s.slot = p.slot and s.own
    order by s.at desc, s.number desc
    limit 1
) as s
where %(name)s::text is null or p.name = %(name)s
