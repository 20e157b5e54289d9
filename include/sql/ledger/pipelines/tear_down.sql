update penstock.pipeline
set
    state = 'torn_down', merge_attempt = null,
    halted_slug = null, halted_reason = null, halted_by = null, halted_from = null
where name = %(name)s
