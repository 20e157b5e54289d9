-- `open`: also those whose end was not sent yet.
select
    number, pipeline, slug, subject, level, message, numbers, opened_at, seen_at, last_notified_at, last_notified_level,
    closed_at, cause, freed_at, by_task
from penstock.alarm
where
    (%(name)s::text is null or pipeline = %(name)s)
    and (
        not %(open)s
        or closed_at is null
        or (last_notified_at is not null and last_notified_at < closed_at)
    )
order by closed_at is null desc, number desc
limit %(limit)s
