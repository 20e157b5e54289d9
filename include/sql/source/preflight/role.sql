-- Who this session is of, which running server and database this is, what the role may do, what of that is more than to read tables,
-- the rights of the role `other` too, and how many WAL senders are taken.
-- rds_replication stands for the REPLICATION attribute on a managed service.
select
  r.rolname::text as name,
  current_database()::text as database,
  pg_postmaster_start_time()::text as started,
  r.rolsuper or r.rolreplication or exists (
    select from pg_roles m where m.rolname = 'rds_replication' and pg_has_role(r.oid, m.oid, 'member')
  ) as replication,
  has_database_privilege(current_database(), 'create') as create_in_database,
  (select count(*)::int from pg_stat_replication) as senders,
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
      and (m.rolname = %(other)s or m.rolname in (
        'rds_replication', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'
      ))
      and pg_has_role(r.oid, m.oid, 'member')
      and not r.rolsuper
    order by 1
  ) as beyond
from pg_roles r
where r.rolname = current_user
