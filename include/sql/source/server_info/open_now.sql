-- Transactions that have written, in any database, and prepared ones, the oldest first. Never their query: it may hold values.
-- The start of another role's transaction is only shown to pg_read_all_stats; the age of its xid is shown to everybody.
select * from (
  select
    a.pid,
    a.usename::text as user,
    a.datname::text as database,
    a.application_name as application,
    extract(epoch from clock_timestamp() - a.xact_start)::float as age_seconds,
    null::text as prepared,
    age(a.backend_xid) as xids
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
    p.gid,
    age(p.transaction)
  from pg_prepared_xacts p
) as t
order by t.xids desc
limit %(limit)s
