update penstock.table
set state = %(state)s, paused_slug = null, paused_reason = null, paused_from_state = null
where pipeline = %(name)s and oid = %(oid)s and state = %(expected)s
