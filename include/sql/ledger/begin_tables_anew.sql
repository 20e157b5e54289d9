-- What the lake holds stays known by its snapshot; the next copy replaces it.
update penstock.table
set
    state = 'new', copy_id = null, complete_through = null,
    paused_slug = null, paused_reason = null, paused_from_state = null
where pipeline = %(name)s and state <> 'dropped'
