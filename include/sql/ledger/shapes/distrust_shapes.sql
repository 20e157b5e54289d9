-- What was logged of some tables is forgotten; or of all, and from what the catalog had of them on, the event trigger may have missed
-- something.
with
    doubted as (
        update penstock.shape
        set generation = null
        where pipeline = %(name)s and evidence = 'catalog' and generation is not null and %(oids)s::bigint[] is null
    )
delete from penstock.shape
where
    pipeline = %(name)s and evidence = 'trigger'
    and (%(oids)s::bigint[] is null or oid = any(%(oids)s::bigint[]::oid[]))
