insert into penstock.rebuild (
    pipeline, id, oid, era, kind, state, schema, name, target, place, identity, columns, accepted, copy_id, goal_lsn
)
select
    p.name, %(id)s, %(oid)s, p.era, %(kind)s, %(state)s, %(schema)s, %(table)s, %(target)s, %(place)s, %(identity)s,
    %(columns)s, %(accepted)s, %(copy_id)s, %(goal_lsn)s
from penstock.pipeline as p
where p.name = %(name)s
