-- The position is read after the snapshot was taken: every transaction that the snapshot sees has its commit before it.
select
  pg_export_snapshot(),
  pg_current_snapshot()::text,
  case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end
