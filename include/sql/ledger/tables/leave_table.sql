-- A table of the lake is merged on through the last position at which it was published; any other has nothing to gain.
update penstock.table
set
    left_lsn = coalesce(left_lsn, %(left_lsn)s), discard = %(discard)s and snapshot_id is not null,
    state = case when state = 'ready' and complete_through < %(left_lsn)s then 'ready' else 'dropped' end,
    paused_slug = null, paused_reason = null, paused_by = null, paused_from_state = null, remedy = null
where pipeline = %(name)s and oid = %(oid)s and (left_lsn is null or state = 'paused') and state <> 'dropped'
