-- Only what differs from the newest look of the same table; whoever did not ask for the event trigger does not compare that.
insert into penstock.column_look (pipeline, oid, number, seen_lsn, count, columns, ddl_trigger, key, key_index, hidden)
select
    %(name)s, l.oid, coalesce(n.number, 0) + 1, %(seen_lsn)s, l.count, l.columns, %(trigger)s, l.key, l.key_index, l.hidden
from jsonb_to_recordset(%(looks)s) as l (oid oid, count integer, columns jsonb, key integer[], key_index oid, hidden integer[])
left join lateral (
    select k.number, k.count, k.columns, k.ddl_trigger, k.key, k.key_index, k.hidden
    from penstock.column_look as k
    where k.pipeline = %(name)s and k.oid = l.oid
    order by k.number desc
    limit 1
) as n on true
where
    (n.count, n.columns, n.key, n.key_index, n.hidden) is distinct from (l.count, l.columns, l.key, l.key_index, l.hidden)
    or (%(trigger)s::text is not null and n.ddl_trigger is distinct from %(trigger)s)
