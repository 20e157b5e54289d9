-- What this role may see of the server's health.
select
  pg_has_role('pg_read_all_stats', 'usage') as others_activity,
  has_function_privilege('pg_ls_waldir()', 'execute') as wal_directory
