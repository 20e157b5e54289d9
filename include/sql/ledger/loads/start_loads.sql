-- Tables to be built from earlier loads' files, which begin with what is known of these, if they are still there.
insert into penstock.load (
    pipeline, id, oid, era, cause, state, schema, name, target, place, identity, columns, shape, goal_lsn,
    copy_id, snapshot, lsn, needs_after, attnums, files, rows, bytes, copy_started_at, copied_at
)
select
    p.name, o.id, o.oid, p.era, o.cause, 'building', o.schema, o.name, o.target, o.place, o.identity, o.columns,
    o.accepted -> 'shape', o.goal_lsn,
    c.copy_id, c.snapshot, c.lsn, c.needs_after, c.attnums, c.files, c.rows, c.bytes, c.copy_started_at, c.copied_at
from jsonb_to_recordset(%(orders)s) as o (
    id text, oid oid, cause text, schema text, name text, target text[], place text[], identity text, columns jsonb,
    accepted jsonb, copy_id text, goal_lsn pg_lsn
)
join penstock.pipeline as p on p.name = %(name)s
join penstock.load as c on c.pipeline = p.name and c.era = p.era and c.oid = o.oid and c.copy_id = o.copy_id
where c.cause in ('first', 'resync') and c.files is not null
