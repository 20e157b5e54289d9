-- A 64-bit advisory lock shows its halves as classid and objid, with objsubid 1.
select
  l.pid,
  a.usename::text,
  a.application_name
from pg_locks l
join pg_database d on d.oid = l.database and d.datname = current_database()
left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory'
  and l.classid::bigint = (%(key)s::bigint >> 32) & 4294967295
  and l.objid::bigint = %(key)s::bigint & 4294967295
  and l.objsubid = 1
  and l.granted
