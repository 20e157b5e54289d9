update penstock.load
set
    state = case cause when 'resync' then 'building' else 'ready' end,
    files = %(files)s, rows = %(rows)s, bytes = %(bytes)s, copied_at = clock_timestamp(), changed_at = clock_timestamp()
where
    pipeline = %(name)s and copy_id = %(copy_id)s and oid = %(oid)s and cause in ('first', 'resync')
    and state = 'copying'
