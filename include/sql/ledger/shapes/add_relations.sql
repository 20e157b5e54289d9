-- Only where the version is new, or was not known to have these attnums, and this key, before. Returns those that the ledger has with
-- another content.
with
    given as (
        select r.oid, r.version, r.sent, r.mapped, r.attnums, r.key
        from jsonb_to_recordset(%(relations)s) as r (
            oid oid, version integer, sent jsonb, mapped boolean, attnums integer[], key integer[]
        )
    ),
    newest as (
        select distinct on (r.oid, r.version) r.oid, r.version, r.sent, r.mapped, r.attnums, r.key
        from penstock.relation as r
        join given as g using (oid, version)
        where r.pipeline = %(name)s
        order by r.oid, r.version, r.from_lsn desc
    ),
    added as (
        insert into penstock.relation (pipeline, oid, version, from_lsn, sent, mapped, attnums, key)
        select %(name)s, g.oid, g.version, %(from_lsn)s, g.sent, g.mapped, g.attnums, g.key
        from given as g
        left join newest as n using (oid, version)
        where
            n.version is null
            or (g.mapped and (n.mapped, n.attnums, n.key) is distinct from (g.mapped, g.attnums, g.key))
    )
select g.oid, g.version
from given as g
join newest as n using (oid, version)
where n.sent is distinct from g.sent
