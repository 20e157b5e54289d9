-- The first 64-bit transaction id not yet given out: bounds every transaction that was written before.
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint
