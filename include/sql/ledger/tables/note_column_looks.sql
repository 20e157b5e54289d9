-- Only what differs from the newest look of the same table.
insert into penstock.column_look (pipeline, oid, number, seen_lsn, count, columns, ddl_trigger)
select %(name)s, l.oid, coalesce(n.number, 0) + 1, %(seen_lsn)s, l.count, l.columns, %(trigger)s
from jsonb_to_recordset(%(looks)s) as l (oid oid, count integer, columns jsonb)
left join lateral (
    select k.number, k.count, k.columns, k.ddl_trigger
    from penstock.column_look as k
    where k.pipeline = %(name)s and k.oid = l.oid
    order by k.number desc
    limit 1
) as n on true
where (n.count, n.columns, n.ddl_trigger) is distinct from (l.count, l.columns, %(trigger)s)
