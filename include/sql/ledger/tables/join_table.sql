-- It waits for its copy; what the lake has of it from before stays readable until then.
update penstock.table
set
    state = 'new', joined_lsn = %(joined_lsn)s, joined_xid = %(joined_xid)s, left_lsn = null, discard = false,
    announced_at = null, copy_id = null, paused_slug = null, paused_reason = null, paused_by = null, paused_from_state = null, remedy = null
where pipeline = %(name)s and oid = %(oid)s
