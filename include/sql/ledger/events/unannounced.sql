select e.number, e.at, t.schema || '.' || t.name as table_name, e.message, e.details
from penstock.event as e
join penstock.table as t on t.pipeline = e.pipeline and t.oid = e.table_oid
where e.pipeline = %(name)s and e.slug = %(slug)s and e.announced_at is null
order by e.number
