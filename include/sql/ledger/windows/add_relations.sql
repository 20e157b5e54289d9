insert into penstock.relation (pipeline, oid, version, schema, name, replica_identity, columns, seen_lsn)
select %(name)s, r.oid, r.version, r.schema, r.name, r.replica_identity, r.columns, %(seen_lsn)s
from jsonb_to_recordset(%(relations)s) as r (
    oid oid, version integer, schema text, name text, replica_identity text, columns jsonb
)
on conflict (pipeline, oid, version) do nothing
