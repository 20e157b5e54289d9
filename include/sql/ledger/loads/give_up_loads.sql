-- One load; or what is being made of tables that left, or were hidden, which lacks what was written since: a shadow is of the past, and
-- continues. With neither, all of an era that has ended.
update penstock.load
set
    state = 'given_up', slug = 'rebuild-given-up', reason = %(reason)s,
    finished_at = clock_timestamp(), changed_at = clock_timestamp()
where
    pipeline = %(name)s and cause in ('resync', 'replay', 'shadow') and state in ('copying', 'building', 'ready')
    and (%(id)s::text is null or id = %(id)s)
    and (%(oids)s::oid[] is null or (oid = any(%(oids)s::oid[]) and cause <> 'shadow'))
