update penstock.rebuild
set state = 'building', changed_at = clock_timestamp()
where pipeline = %(name)s and id = %(id)s and state = 'copying' and copy_id = %(copy_id)s
