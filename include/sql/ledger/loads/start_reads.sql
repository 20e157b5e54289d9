-- Tables of which rows are read under one snapshot: all columns of them where it does not say which.
insert into penstock.load (
    pipeline, id, oid, era, cause, state, schema, name, target, place, identity, columns, accepted,
    copy_id, snapshot, lsn, needs_after, attnums, whole, stays, leaves, copy_started_at
)
select
    p.name, %(copy_id)s, t.oid, p.era, r.cause, 'copying', t.schema, t.name, t.target, t.target, t.identity, t.columns,
    t.accepted, %(copy_id)s, %(snapshot)s, %(lsn)s, penstock.needed_after(p.name, %(snapshot)s),
    coalesce(r.attnums, penstock.attnums(t.columns)), r.whole, r.stays, r.leaves, clock_timestamp()
from jsonb_to_recordset(%(reads)s) as r (
    oid oid, cause text, attnums integer[], whole boolean, stays jsonb, leaves text[]
)
join penstock.pipeline as p on p.name = %(name)s
join penstock.table as t on t.pipeline = p.name and t.oid = r.oid
on conflict (pipeline, id, oid) do nothing
