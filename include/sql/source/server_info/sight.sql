-- A bound of every transaction that has written before this moment: the next id, which this takes. The xmax of a
-- snapshot would not do: it is above the last transaction that has ended, not above those that are open. A standby gives out none.
select
  case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end as lsn,
  case when not pg_is_in_recovery() then pg_current_xact_id()::text::bigint end as xid
