-- The copies and rebuilds under way, each with when it last got on as far as the ledger knows: a table of it was copied, or a part of
-- one built. The landing zone knows of parts of a table that were copied.
select 'copy' as kind, c.id, count(*) filter (where c.state = 'copying') as tables, max(coalesce(c.finished_at, c.started_at)) as moved_at,
    c.id as copy_id
from penstock.copy as c
where
    c.pipeline = %(name)s
    and c.id in (select t.copy_id from penstock.table as t where t.pipeline = %(name)s and t.state = 'copying')
group by c.id
union all
select r.kind, r.id, 1, max(greatest(r.changed_at, c.finished_at, c.started_at)),
    max(r.copy_id) filter (where r.state = 'copying')
from penstock.rebuild as r
left join penstock.copy as c on c.pipeline = r.pipeline and c.id = r.copy_id
where r.pipeline = %(name)s and r.state in ('copying', 'building', 'ready')
group by r.kind, r.id
order by moved_at
