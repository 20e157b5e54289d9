-- `failed` is the run that an alarm tells of.
select
    pipeline, slug, subject, level, message, opened_at, extract(epoch from greatest(now() - opened_at, '0'))::float8 as open_seconds,
    case when numbers ->> 'run_id' <> '' then
        json_build_object('dag', numbers ->> 'dag', 'run_id', numbers ->> 'run_id', 'task', coalesce(numbers ->> 'task', ''))
    end as failed,
    by_task as task
from penstock.alarm
where closed_at is null and (%(name)s::text is null or pipeline = %(name)s)
order by pipeline, level = 'critical' desc, opened_at
limit %(limit)s
