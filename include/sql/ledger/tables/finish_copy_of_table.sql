update penstock.table
set
    state = case state when 'paused' then 'paused' else 'copied' end,
    paused_from_state = case state when 'paused' then 'copied' end
where
    pipeline = %(name)s and oid = %(oid)s and copy_id = %(copy_id)s
    and 'copying' in (state, paused_from_state)
