-- What else bears on the slots: how many are taken, and on a standby what it reports to its primary.
select
  clock_timestamp() as at,
  (select count(*)::int from pg_replication_slots) as slots_taken,
  (select count(*)::int from pg_stat_replication) as senders_taken,
  current_setting('hot_standby_feedback') = 'on' as standby_feedback,
  nullif(current_setting('primary_slot_name'), '') as primary_slot_name
