-- Transactions that have written, in any database: slot creation waits for each. Never their query: it may hold values.
-- Without pg_read_all_stats the start of another role's transaction is not to be seen.
select
  a.pid,
  a.usename::text as user,
  a.datname::text as database,
  a.application_name as application,
  extract(epoch from clock_timestamp() - a.xact_start)::float as age_seconds,
  null::text as prepared
from pg_stat_activity a
where a.backend_xid is not null
  and a.pid <> pg_backend_pid()
union all
select
  null,
  p.owner::text,
  p.database::text,
  null,
  extract(epoch from clock_timestamp() - p.prepared)::float,
  p.gid
from pg_prepared_xacts p
order by age_seconds desc nulls first
