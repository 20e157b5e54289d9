-- One slot, or all with null. By way of jsonb: the last columns came with versions 16 and 17.
select
  s.slot_name::text as name,
  s.plugin::text as plugin,
  s.slot_type::text as slot_type,
  s.database::text as database,
  s.temporary,
  s.active,
  s.active_pid,
  age(s.catalog_xmin) as catalog_xmin_age,
  s.restart_lsn as restart,
  s.confirmed_flush_lsn as confirmed,
  s.wal_status,
  s.safe_wal_size,
  s.two_phase,
  coalesce(
    to_jsonb(s) ->> 'invalidation_reason',
    case when s.wal_status = 'lost' then 'wal_removed' end,
    case when to_jsonb(s) ->> 'conflicting' = 'true' then 'conflicting' end
  ) as invalidation,
  (to_jsonb(s) ->> 'inactive_since')::timestamptz as inactive_since,
  coalesce(to_jsonb(s) ->> 'synced' = 'true', false) as synced,
  (w.flushed - s.restart_lsn)::bigint as retained,
  (w.flushed - s.confirmed_flush_lsn)::bigint as unread,
  t.spill_bytes::bigint as spill_bytes,
  t.total_bytes::bigint as total_bytes
from pg_replication_slots s
left join pg_stat_replication_slots t on t.slot_name = s.slot_name
cross join (
  select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end
) as w (flushed)
where s.slot_name = coalesce(%(slot)s::text, s.slot_name)
order by s.slot_name
