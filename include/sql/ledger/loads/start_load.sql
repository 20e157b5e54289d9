-- A table to be built; one of an earlier load's files begins with what is known of these, if they are still there.
insert into penstock.load (
    pipeline, id, oid, era, cause, state, schema, name, target, place, identity, columns, accepted, goal_lsn,
    copy_id, snapshot, lsn, needs_after, attnums, files, rows, bytes, copy_started_at, copied_at
)
select
    p.name, %(id)s, %(oid)s, p.era, %(cause)s, %(state)s, %(schema)s, %(table)s, %(target)s, %(place)s, %(identity)s,
    %(columns)s, %(accepted)s, %(goal_lsn)s,
    %(copy_id)s, coalesce(c.snapshot, '0:0:'), coalesce(c.lsn, '0/0'), coalesce(c.needs_after, '0/0'), coalesce(c.attnums, '{}'),
    coalesce(c.files, '[]'), coalesce(c.rows, 0), coalesce(c.bytes, 0), c.copy_started_at, c.copied_at
from penstock.pipeline as p
left join penstock.load as c
    on
        c.pipeline = p.name and c.era = p.era and c.copy_id = %(copy_id)s and c.oid = %(oid)s
        and c.cause in ('first', 'resync') and c.files is not null
where p.name = %(name)s and (%(copy_id)s::text is null or c.id is not null)
