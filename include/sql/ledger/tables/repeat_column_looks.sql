-- The newest look of each table again, where the event trigger was another one then.
insert into penstock.column_look (pipeline, oid, number, seen_lsn, count, columns, ddl_trigger, key, key_index, hidden)
select n.pipeline, n.oid, n.number + 1, %(seen_lsn)s, n.count, n.columns, %(trigger)s, n.key, n.key_index, n.hidden
from (
    select distinct on (k.oid) k.*
    from penstock.column_look as k
    where k.pipeline = %(name)s and k.oid = any(%(oids)s::bigint[]::oid[])
    order by k.oid, k.number desc
) as n
where n.ddl_trigger is distinct from %(trigger)s
