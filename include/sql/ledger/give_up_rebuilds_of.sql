-- What is being made of a table that left lacks what was written since; a shadow is of the past, and goes on.
update penstock.rebuild
set
    state = 'given_up', slug = 'rebuild-given-up', reason = 'the table left the publication',
    finished_at = clock_timestamp(), changed_at = clock_timestamp()
where pipeline = %(name)s and oid = %(oid)s and kind <> 'shadow' and state in ('copying', 'building', 'ready')
