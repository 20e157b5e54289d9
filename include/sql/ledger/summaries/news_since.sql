-- The events of these slugs in a span of time, oldest first.
select e.at, e.slug, e.level, e.table_oid as oid, t.schema || '.' || t.name as table, e.message, e.by_task as task
from penstock.event as e
left join penstock.table as t on t.pipeline = e.pipeline and t.oid = e.table_oid
where e.pipeline = %(name)s and e.at >= %(since)s and e.slug = any(%(slugs)s)
order by e.number
