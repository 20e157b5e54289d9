-- Those `kept` are of the present era, and their files are there.
select
    l.pipeline, l.id, l.oid, l.era, l.cause, l.state, l.schema, l.name, l.target, l.place, l.identity, l.columns,
    penstock.accepted(l.pipeline, l.oid, l.id, l.shape) as accepted, l.copy_id, l.snapshot, l.lsn, l.needs_after, l.attnums, l.whole,
    l.stays, coalesce(l.files, '[]') as files, l.rows, l.bytes,
    l.copy_started_at, l.copied_at, l.through_lsn, l.goal_lsn, l.snapshot_id, l.run, l.built_rows, l.former, l.slug,
    l.reason, l.started_at, l.changed_at, d.after
from penstock.load as l
join penstock.pipeline as p on p.name = l.pipeline
left join penstock.load_due as d on d.pipeline = l.pipeline and d.id = l.id and d.oid = l.oid
where
    l.pipeline = %(name)s
    and l.cause = any(%(causes)s)
    and (%(states)s::text[] is null or l.state = any(%(states)s))
    and (%(copy_id)s::text is null or l.copy_id = %(copy_id)s)
    and (%(oid)s::oid is null or l.oid = %(oid)s)
    and (not %(kept)s or (l.era = p.era and l.files is not null))
order by l.started_at, l.id, l.oid
