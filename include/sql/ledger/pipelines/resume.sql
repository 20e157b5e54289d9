update penstock.pipeline
set state = halted_from, halted_slug = null, halted_reason = null, halted_by = null, halted_from = null
where name = %(name)s and state = 'halted'
