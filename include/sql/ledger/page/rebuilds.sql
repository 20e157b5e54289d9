select
    r.id, r.oid, r.schema || '.' || r.name as table, r.kind, r.state, array_to_string(r.place, '.') as place, r.through_lsn,
    coalesce(r.goal_lsn, p.position) as end_lsn, r.rows, c.rows as copied_rows, r.started_at, r.changed_at
from penstock.rebuild as r
join penstock.pipeline as p on p.name = r.pipeline
left join penstock.copy as c on c.pipeline = r.pipeline and c.id = r.copy_id and c.oid = r.oid and c.state <> 'copying'
where r.pipeline = %(name)s and (%(oid)s::oid is null or r.oid = %(oid)s) and r.state in ('copying', 'building', 'ready')
order by r.started_at, r.id
limit %(limit)s
