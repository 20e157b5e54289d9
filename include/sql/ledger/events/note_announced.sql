update penstock.event
set announced_at = clock_timestamp()
where pipeline = %(name)s and number = any(%(numbers)s::bigint[])
