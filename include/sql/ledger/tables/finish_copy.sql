update penstock.copy
set state = 'copied', files = %(files)s, rows = %(rows)s, bytes = %(bytes)s, finished_at = clock_timestamp()
where pipeline = %(name)s and id = %(copy_id)s and oid = %(oid)s and state = 'copying'
