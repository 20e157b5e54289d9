-- With its report, or with the condition that ended it.
update penstock.maintenance
set ended_at = clock_timestamp(), report = %(report)s, error = %(error)s
where pipeline = %(name)s and attempt = %(attempt)s and ended_at is null
