-- Their copies and windows are of an era that has ended.
update penstock.rebuild
set
    state = 'given_up', slug = 'rebuild-given-up', reason = 'the era of its slot has ended',
    finished_at = clock_timestamp(), changed_at = clock_timestamp()
where pipeline = %(name)s and state in ('copying', 'building', 'ready')
