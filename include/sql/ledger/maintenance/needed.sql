-- What is read of the landing zone besides copies: every window, the fetches that are under way or that the lake does not have yet, and
-- the attempts whose plan and result are read.
select 'window' as kind, w.attempt as name, w.from_lsn, w.upto_lsn
from penstock.window as w
where w.pipeline = %(name)s
union all
select 'fetch', l.copy_id, null, null
from penstock.load as l
join penstock.table as t on t.pipeline = l.pipeline and t.oid = l.oid
where
    l.pipeline = %(name)s and l.cause in ('columns', 'partitions') and (l.state = 'copying' or t.complete_through < l.lsn)
union all
(select 'run', c.attempt, null, null from penstock.cut as c where c.pipeline = %(name)s order by c.number desc limit 1)
union all
select 'run', p.merge_attempt, null, null from penstock.pipeline as p where p.name = %(name)s and p.merge_attempt is not null
union all
select 'run', l.run, null, null
from penstock.load as l
where l.pipeline = %(name)s and l.state in ('copying', 'building', 'ready') and l.run is not null
