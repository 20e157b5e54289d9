select oid::bigint as oid, state
from penstock.table_state
where pipeline = %(name)s and oid = any(%(oids)s::bigint[]::oid[])
