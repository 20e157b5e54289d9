select
    r.pipeline, r.id, r.oid, r.era, r.kind, r.state, r.schema, r.name, r.target, r.place, r.identity, r.columns,
    r.accepted, r.copy_id, r.through_lsn, r.goal_lsn, r.snapshot_id, r.run, r.rows, r.former, r.slug, r.reason,
    r.started_at, r.changed_at, r.finished_at, c.snapshot as copy_snapshot, c.lsn as copy_lsn,
    coalesce(d.after, r.through_lsn) as after
from penstock.rebuild as r
left join penstock.copy as c on c.pipeline = r.pipeline and c.id = r.copy_id and c.oid = r.oid
left join penstock.rebuild_due as d on d.pipeline = r.pipeline and d.id = r.id
where r.pipeline = %(name)s and (%(states)s::text[] is null or r.state = any(%(states)s))
order by r.started_at, r.id
