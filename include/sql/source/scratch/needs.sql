-- What a schema and a migration count on besides tables: the encoding; what unqualified names mean, in the form that set_config
-- takes; the roles that may be named, but for the server's own; extensions with their schemas, in the order in which they were made,
-- but for what each database has. And which running server this is: a restored copy has the same identifier, and another start.
select
  getdatabaseencoding()::text as encoding,
  (
    select substr(setting, length('search_path=') + 1)
    from pg_db_role_setting as kept cross join unnest(kept.setconfig) as setting
    where
      kept.setrole = 0
      and kept.setdatabase = (select oid from pg_database where datname = current_database())
      and setting like 'search\_path=%%'
  ) as search_path,
  array(
    select rolname::text from pg_roles where rolname !~ '^pg_' and rolname <> %(superuser)s order by 1
  ) as roles,
  array(
    select array[e.extname::text, n.nspname::text]
    from pg_extension e
    join pg_namespace n on n.oid = e.extnamespace
    where e.extname <> 'plpgsql'
    order by e.oid
  ) as extensions,
  (select system_identifier from pg_control_system())::text || ' ' || pg_postmaster_start_time()::text as running
