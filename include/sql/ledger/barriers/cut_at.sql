-- The newest cut of this era at exactly this position.
select c.pipeline, c.lsn, c.attempt, c.tables, c.rows, c.published_at, c.era, c.cuts_snapshot_id
from penstock.cut as c
join penstock.pipeline as p on p.name = c.pipeline and p.era = c.era
where c.pipeline = %(name)s and c.lsn = %(lsn)s
order by c.number desc
limit 1
