-- Tables of which rows are read under one snapshot: all columns of them where it does not say which. Of a resync the table looks as the
-- snapshot shows it; it may be read again under a later one: what an earlier try had not finished is forgotten. A first copy is the table's
-- own from here on.
with
    reads as (
        select *
        from jsonb_to_recordset(%(reads)s) as r (
            oid oid, cause text, attnums integer[], whole boolean, stays jsonb, leaves text[],
            id text, place text[], schema text, name text, target text[], identity text, columns jsonb, accepted jsonb
        )
    ),
    own as (
        update penstock.table as t
        set copy_id = %(copy_id)s
        from reads as r
        where t.pipeline = %(name)s and t.oid = r.oid and r.cause = 'first' and t.state = 'new'
        returning t.oid
    )
insert into penstock.load as l (
    pipeline, id, oid, era, cause, state, schema, name, target, place, identity, columns, shape,
    copy_id, snapshot, lsn, needs_after, attnums, whole, stays, leaves, copy_started_at
)
select
    p.name, coalesce(r.id, %(copy_id)s), t.oid, p.era, r.cause, 'copying', coalesce(r.schema, t.schema),
    coalesce(r.name, t.name), coalesce(r.target, t.target), coalesce(r.place, t.target), coalesce(r.identity, t.identity),
    coalesce(r.columns, t.columns), coalesce(r.accepted -> 'shape', t.shape),
    %(copy_id)s, %(snapshot)s, %(lsn)s, penstock.needed_after(p.name, %(snapshot)s),
    coalesce(r.attnums, penstock.attnums(coalesce(r.columns, t.columns))), r.whole, r.stays, r.leaves, clock_timestamp()
from reads as r
join penstock.pipeline as p on p.name = %(name)s
join penstock.table as t on t.pipeline = p.name and t.oid = r.oid
where r.cause <> 'first' or r.oid in (select own.oid from own)
on conflict (pipeline, id, oid) do update
set
    copy_id = excluded.copy_id, snapshot = excluded.snapshot, lsn = excluded.lsn, needs_after = excluded.needs_after,
    attnums = excluded.attnums, copy_started_at = excluded.copy_started_at, schema = excluded.schema, name = excluded.name,
    target = excluded.target, place = excluded.place, identity = excluded.identity, columns = excluded.columns,
    shape = excluded.shape, changed_at = clock_timestamp()
where l.cause in ('first', 'resync') and l.state = 'copying'
