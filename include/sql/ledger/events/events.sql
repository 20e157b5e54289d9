-- The newest of them, or with a slug in `unannounced` those of it that nobody was told of and whose tables are there.
select e.number, e.at, e.slug, e.level, e.table_oid, t.schema || '.' || t.name as table_name, e.message, e.details
from penstock.event as e
left join penstock.table as t on t.pipeline = e.pipeline and t.oid = e.table_oid
where
    e.pipeline = %(name)s
    and (%(unannounced)s::text is null or (e.slug = %(unannounced)s and e.announced_at is null and t.oid is not null))
order by e.number desc
limit %(limit)s
