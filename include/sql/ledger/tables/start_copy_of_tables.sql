update penstock.table
set
    state = 'copying', copy_id = %(copy_id)s,
    paused_slug = null, paused_reason = null, paused_by = null, paused_from_state = null, remedy = null
where pipeline = %(name)s and oid = any(%(oids)s::oid[]) and state <> 'dropped'
