update penstock.table
set state = paused_from_state, paused_slug = null, paused_reason = null, paused_by = null, paused_from_state = null, remedy = null
where pipeline = %(name)s and oid = %(oid)s and state = 'paused'
