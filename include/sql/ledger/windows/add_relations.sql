-- Returns those that the ledger has with another content.
with
    given as (
        select r.oid, r.version, r.schema, r.name, r.replica_identity, r.columns
        from jsonb_to_recordset(%(relations)s) as r (
            oid oid, version integer, schema text, name text, replica_identity text, columns jsonb
        )
    ),
    added as (
        insert into penstock.relation (pipeline, oid, version, schema, name, replica_identity, columns, seen_lsn)
        select %(name)s, g.oid, g.version, g.schema, g.name, g.replica_identity, g.columns, %(seen_lsn)s
        from given as g
        on conflict (pipeline, oid, version) do nothing
    )
select g.oid, g.version
from given as g
join penstock.relation as r on r.pipeline = %(name)s and r.oid = g.oid and r.version = g.version
where (r.schema, r.name, r.replica_identity, r.columns) is distinct from (g.schema, g.name, g.replica_identity, g.columns)
