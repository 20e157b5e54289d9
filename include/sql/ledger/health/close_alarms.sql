-- Alarms of these slugs, and of these subjects if there are any, end unless they were found again.
update penstock.alarm as known
set closed_at = %(at)s
where
    pipeline = %(name)s
    and closed_at is null
    and slug = any(%(judged)s::text[])
    and (%(subjects)s::text[] is null or subject = any(%(subjects)s::text[]))
    and not exists (
        select
        from unnest(%(slugs)s::text[], %(found)s::text[]) as found (slug, subject)
        where found.slug = known.slug and found.subject = known.subject
    )
