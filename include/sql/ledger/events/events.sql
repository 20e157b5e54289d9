select pipeline, at, slug, level, table_oid, message, details
from penstock.event
where pipeline = %(name)s
order by number desc
limit %(limit)s
