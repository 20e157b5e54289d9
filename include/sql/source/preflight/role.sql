-- What the role of this session may do, and how many WAL senders are taken.
-- rds_replication stands for the REPLICATION attribute on a managed service.
select
  r.rolname::text as name,
  r.rolsuper or r.rolreplication or exists (
    select from pg_roles m where m.rolname = 'rds_replication' and pg_has_role(r.oid, m.oid, 'member')
  ) as replication,
  r.rolsuper as superuser,
  current_database()::text as database,
  pg_postmaster_start_time()::text as started,
  has_database_privilege(current_database(), 'create') as create_in_database,
  (select count(*)::int from pg_stat_replication) as senders
from pg_roles r
where r.rolname = current_user
