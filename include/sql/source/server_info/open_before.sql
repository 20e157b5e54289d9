-- Open transactions below a bound that may have written to this database. One that cannot be found any more has ended
-- while we looked: it counts, and is gone at the next look. Never their query: it may hold values.
select
  a.pid,
  coalesce(a.usename, p.owner)::text as user,
  coalesce(a.datname, p.database)::text as database,
  a.application_name as application,
  extract(epoch from clock_timestamp() - coalesce(a.xact_start, p.prepared))::float as age_seconds,
  p.gid as prepared,
  age(open.xid::xid) as xids
from pg_snapshot_xip(pg_current_snapshot()) as open (xid)
left join pg_stat_activity a on a.backend_xid = open.xid::xid
left join pg_prepared_xacts p on p.transaction = open.xid::xid
where open.xid::text::bigint < %(bound)s
  and coalesce(a.datname, p.database, current_database()) = current_database()
order by xids desc
