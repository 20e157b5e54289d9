update penstock.table
set
    paused_from_state = case state when 'paused' then paused_from_state else state end,
    state = 'paused', paused_slug = %(slug)s, paused_reason = %(reason)s
where pipeline = %(name)s and oid = %(oid)s and state <> 'dropped'
