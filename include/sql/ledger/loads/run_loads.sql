update penstock.load
set run = %(run)s, changed_at = clock_timestamp()
where pipeline = %(name)s and id = any(%(ids)s) and state = 'building'
