-- The end of the WAL that a peek may read: beyond the flushed position commits could be lost. The last column is the
-- time before which everything has committed that the position holds: a standby knows only what it has replayed.
select
  case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end,
  clock_timestamp(),
  case when pg_is_in_recovery() then pg_last_xact_replay_timestamp() else clock_timestamp() end
