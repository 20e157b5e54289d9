-- The end of all WAL that was written so far (a standby: replayed), whether it is flushed or not.
select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end
