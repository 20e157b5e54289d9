-- A table to be built from an earlier load's files, which begins with what is known of these, if they are still there.
insert into penstock.load (
    pipeline, id, oid, era, cause, state, schema, name, target, place, identity, columns, shape, goal_lsn,
    copy_id, snapshot, lsn, needs_after, attnums, files, rows, bytes, copy_started_at, copied_at
)
select
    p.name, %(id)s, %(oid)s, p.era, %(cause)s, 'building', %(schema)s, %(table)s, %(target)s, %(place)s, %(identity)s,
    %(columns)s, %(accepted)s::jsonb -> 'shape', %(goal_lsn)s,
    c.copy_id, c.snapshot, c.lsn, c.needs_after, c.attnums, c.files, c.rows, c.bytes, c.copy_started_at, c.copied_at
from penstock.pipeline as p
join penstock.load as c on c.pipeline = p.name and c.era = p.era and c.oid = %(oid)s
where p.name = %(name)s and c.copy_id = %(copy_id)s and c.cause in ('first', 'resync') and c.files is not null
