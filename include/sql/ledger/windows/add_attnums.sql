-- Only where the version was not known to have these attnums, and this key, before.
insert into penstock.relation_attnums (pipeline, oid, version, from_lsn, attnums, key)
select %(name)s, g.oid, g.version, %(from_lsn)s, g.attnums, g.key
from jsonb_to_recordset(%(numbers)s) as g (oid oid, version integer, attnums integer[], key integer[])
where not exists (
    select
    from (
        select r.attnums, r.key
        from penstock.relation_attnums as r
        where r.pipeline = %(name)s and r.oid = g.oid and r.version = g.version
        order by r.from_lsn desc
        limit 1
    ) as known
    where known.attnums is not distinct from g.attnums and known.key is not distinct from g.key
)
