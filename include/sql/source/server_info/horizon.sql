-- The first 64-bit transaction id not yet given out: bounds every transaction that was written before. And the oldest one
-- that is still running: all below it have ended.
select
  pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
  pg_snapshot_xmin(pg_current_snapshot())::text::bigint
