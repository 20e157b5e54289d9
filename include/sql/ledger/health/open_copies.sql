-- The copies and rebuilds under way, each with when it last got on: a table of it was copied, or a part of one built.
select 'copy' as kind, c.id, count(*) filter (where c.state = 'copying') as tables, max(coalesce(c.finished_at, c.started_at)) as moved_at
from penstock.copy as c
where
    c.pipeline = %(name)s
    and c.id in (select t.copy_id from penstock.table as t where t.pipeline = %(name)s and t.state = 'copying')
group by c.id
union all
select r.kind, r.id, 1, max(greatest(r.changed_at, c.finished_at, c.started_at))
from penstock.rebuild as r
left join penstock.copy as c on c.pipeline = r.pipeline and c.id = r.copy_id
where r.pipeline = %(name)s and r.state in ('copying', 'building', 'ready')
group by r.kind, r.id
order by moved_at
