update penstock.pipeline
set
    halted_from = case state when 'halted' then halted_from else state end,
    state = 'halted', halted_slug = %(slug)s, halted_reason = %(reason)s, halted_by = penstock.by_task()
where name = %(name)s and state <> 'torn_down'
