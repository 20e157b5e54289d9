select e.at, t.schema || '.' || t.name as table_name, e.message, e.details
from penstock.event as e
join penstock.table as t on t.pipeline = e.pipeline and t.oid = e.table_oid
where e.pipeline = %(name)s and e.slug = %(slug)s
order by e.at desc, e.number desc
limit %(limit)s
