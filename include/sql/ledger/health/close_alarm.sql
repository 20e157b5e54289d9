update penstock.alarm
set closed_at = %(at)s
where pipeline = %(name)s and slug = %(slug)s and subject = %(subject)s and closed_at is null
