-- What is known of a table is what its first copy is to be loaded as.
update penstock.load as l
set schema = t.schema, name = t.name, target = t.target, identity = t.identity, columns = t.columns, shape = t.shape
from penstock.table as t
where
    l.pipeline = %(name)s and l.oid = any(%(oids)s::oid[]) and l.cause = 'first' and l.state in ('copying', 'ready')
    and t.pipeline = l.pipeline and t.oid = l.oid
