select e.at, e.level, e.slug, e.message, e.table_oid as oid, t.schema || '.' || t.name as table, e.by_task as task
from (
    select pipeline, number, at, slug, level, table_oid, message, by_task
    from penstock.event
    where
        pipeline = %(name)s and (%(oid)s::oid is null or table_oid = %(oid)s)
        and (%(since)s::timestamptz is null or at >= %(since)s) and (%(slugs)s::text[] is null or slug = any(%(slugs)s))
    order by at desc, number desc
    limit %(limit)s
) as e
left join penstock.table as t on t.pipeline = e.pipeline and t.oid = e.table_oid
order by e.at desc, e.number desc
