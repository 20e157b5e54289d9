update penstock.maintenance
set ended_at = clock_timestamp(), error = %(error)s
where pipeline = %(name)s and attempt = %(attempt)s and ended_at is null
