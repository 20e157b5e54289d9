update penstock.rebuild
set state = 'given_up', slug = %(slug)s, reason = %(reason)s, finished_at = clock_timestamp(), changed_at = clock_timestamp()
where pipeline = %(name)s and id = %(id)s and state in ('copying', 'building', 'ready')
