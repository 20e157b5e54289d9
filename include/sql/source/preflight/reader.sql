-- Who reads tables, which running server and database this is, and what the role may do besides.
select
  r.rolname::text as name,
  current_database()::text as database,
  pg_postmaster_start_time()::text as started,
  array_remove(
    array[
      case when r.rolsuper then 'it is a superuser' end,
      case when r.rolreplication then 'it has the attribute REPLICATION' end,
      case when r.rolcreaterole then 'it has the attribute CREATEROLE' end,
      case when r.rolcreatedb then 'it has the attribute CREATEDB' end,
      case when has_database_privilege(current_database(), 'create') then 'it may create schemas in the database' end
    ]::text[],
    null
  )
  || array(
    select 'it is a member of ' || quote_ident(m.rolname)
    from pg_roles m
    where m.oid <> r.oid
      and (m.rolname = %(role)s or m.rolname in (
        'rds_replication', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'
      ))
      and pg_has_role(r.oid, m.oid, 'member')
      and not r.rolsuper
    order by 1
  ) as beyond
from pg_roles r
where r.rolname = current_user
