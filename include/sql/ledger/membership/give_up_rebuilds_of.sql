-- What is being made of a table that left, or was hidden, lacks what was written since; a shadow is of the past, and continues.
update penstock.rebuild
set
    state = 'given_up', slug = 'rebuild-given-up', reason = %(reason)s,
    finished_at = clock_timestamp(), changed_at = clock_timestamp()
where pipeline = %(name)s and oid = any(%(oids)s::oid[]) and kind <> 'shadow' and state in ('copying', 'building', 'ready')
