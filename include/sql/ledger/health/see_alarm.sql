insert into penstock.alarm as known (pipeline, slug, subject, level, message, numbers, opened_at, seen_at, cause)
values (%(name)s, %(slug)s, %(subject)s, %(level)s, %(message)s, %(numbers)s, %(at)s, %(at)s, %(cause)s)
on conflict (pipeline, slug, subject) where closed_at is null
do update set
    level = excluded.level, message = excluded.message, numbers = excluded.numbers, seen_at = excluded.seen_at,
    cause = excluded.cause,
    freed_at = case
        when excluded.cause is not null then null
        when known.cause is not null then excluded.seen_at
        else known.freed_at
    end
