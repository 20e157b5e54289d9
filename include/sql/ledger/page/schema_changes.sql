-- `cost` has what was copied for a change, nothing where it was metadata alone.
select
    e.at, e.table_oid as oid, t.schema || '.' || t.name as table, e.details ->> 'rule' as rule, e.message,
    (e.details ->> 'xid')::bigint as xid,
    json_strip_nulls(json_build_object('rows', e.details -> 'rows', 'bytes', e.details -> 'bytes')) as cost
from penstock.event as e
join penstock.table as t on t.pipeline = e.pipeline and t.oid = e.table_oid
where e.pipeline = %(name)s and e.slug = %(slug)s and (%(oid)s::oid is null or e.table_oid = %(oid)s)
order by e.at desc, e.number desc
limit %(limit)s
