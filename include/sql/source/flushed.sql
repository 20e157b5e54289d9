-- The end of the WAL that a peek may read: beyond the flushed position commits could be lost.
select
  case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end,
  clock_timestamp()
