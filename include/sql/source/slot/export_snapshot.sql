-- The position is read after the snapshot was taken: every transaction that the snapshot sees has its commit before it.
-- The place of the next record skips a page's header, the flushed position does not: while nothing is written it would
-- never come that far. So a place right after a header (24 bytes, 40 at a segment's beginning) is where its page begins.
with taken as materialized (
  select
    pg_export_snapshot() as name,
    pg_current_snapshot()::text as snapshot,
    case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end as lsn
)
select
  name,
  snapshot,
  lsn - case
    when mod(lsn - '0/0', pg_size_bytes(current_setting('wal_segment_size'))) = 40 then 40
    when mod(lsn - '0/0', current_setting('wal_block_size')::integer) = 24 then 24
    else 0
  end
from taken
