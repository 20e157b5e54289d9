-- A 64-bit advisory lock shows its halves as classid and objid, with objsubid 1.
select a.application_name, a.backend_start
from hashtextextended(%(key)s, 0) as hold (key)
cross join pg_locks as l
join pg_database as d on d.oid = l.database and d.datname = current_database()
left join pg_stat_activity as a on a.pid = l.pid
where
    l.locktype = 'advisory'
    and l.classid::bigint = (hold.key >> 32) & 4294967295
    and l.objid::bigint = hold.key & 4294967295
    and l.objsubid = 1
    and l.granted
