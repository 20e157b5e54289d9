insert into penstock.alarm (pipeline, slug, subject, level, message, numbers, opened_at, seen_at)
values (%(name)s, %(slug)s, %(subject)s, %(level)s, %(message)s, %(numbers)s, %(at)s, %(at)s)
on conflict (pipeline, slug, subject) where closed_at is null
do update set level = excluded.level, message = excluded.message, numbers = excluded.numbers, seen_at = excluded.seen_at
