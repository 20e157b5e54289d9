-- Open rebuilds, each built through `through_lsn` on its way to `end_lsn`; `rows` are those built so far.
select
    l.id, l.oid, l.schema || '.' || l.name as table, l.cause as kind, l.state, array_to_string(l.place, '.') as place, l.through_lsn,
    coalesce(l.goal_lsn, p.position) as end_lsn, l.built_rows as rows, case when l.state <> 'copying' then l.rows end as copied_rows,
    l.started_at, l.changed_at
from penstock.load as l
join penstock.pipeline as p on p.name = l.pipeline
where
    l.pipeline = %(name)s and (%(oid)s::oid is null or l.oid = %(oid)s)
    and l.cause in ('resync', 'replay', 'shadow') and l.state in ('copying', 'building', 'ready')
order by l.started_at, l.id
limit %(limit)s
