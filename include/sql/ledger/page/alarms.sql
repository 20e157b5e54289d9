select pipeline, slug, subject, level, message, opened_at, numbers, by_task
from penstock.alarm
where closed_at is null and (%(name)s::text is null or pipeline = %(name)s)
order by pipeline, level = 'critical' desc, opened_at
limit %(limit)s
