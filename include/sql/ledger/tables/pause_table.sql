-- A pause soon after the bell for the one before belongs to it: what a copy does not end must not be copied without bound.
update penstock.table
set
    paused_from_state = case state when 'paused' then paused_from_state else state end,
    paused_at = case
        when state = 'paused' or announced_at > clock_timestamp() - greatest('1 hour', 2 * least(announced_at - paused_at, '1 day'))
            then coalesce(paused_at, clock_timestamp())
        else clock_timestamp()
    end,
    state = 'paused', paused_slug = %(slug)s, paused_reason = %(reason)s, paused_by = penstock.by_task(), fetchable = %(fetchable)s
where pipeline = %(name)s and oid = %(oid)s and state <> 'dropped'
