select oid, version, schema, name, replica_identity, columns, seen_lsn
from penstock.relation
where pipeline = %(name)s
order by oid, version
