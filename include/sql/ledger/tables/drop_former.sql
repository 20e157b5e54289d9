-- The table that had this target before is dropped at once; its lake table is replaced when the new table's is there.
update penstock.table
set
    state = 'dropped', discard = false, paused_slug = null, paused_reason = null, paused_by = null, paused_from_state = null, remedy = null
where pipeline = %(name)s and oid <> %(oid)s and target = %(target)s and left_lsn is not null
