-- What identifies the server and what a pipeline needs of it. Timeline: from the WAL's file name where the server
-- writes WAL (right after a promotion too), else as of the last restart point. The plugins that may decode are shown to
-- members of pg_read_all_settings only: the view leaves the row out for others, where current_setting() would fail.
select
  current_setting('server_version_num')::int as version_num,
  current_setting('server_version') as version,
  (select system_identifier from pg_control_system()) as system_identifier,
  case
    when pg_is_in_recovery() then (select timeline_id from pg_control_checkpoint())
    else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
  end as timeline,
  current_database()::text as database,
  pg_is_in_recovery() as in_recovery,
  current_setting('wal_level') as wal_level,
  current_setting('server_encoding') as encoding,
  current_setting('max_replication_slots')::int as max_replication_slots,
  current_setting('max_wal_senders')::int as max_wal_senders,
  pg_size_bytes(nullif(current_setting('max_slot_wal_keep_size'), '-1')) as max_slot_wal_keep_size,
  pg_size_bytes(nullif(current_setting('temp_file_limit'), '-1')) as temp_file_limit,
  coalesce(extract(epoch from nullif(current_setting('idle_replication_slot_timeout', true), '')::interval), 0)::int
    as idle_slot_timeout,
  (select setting from pg_settings where name = 'output_plugin_libraries') as output_plugins
