-- The newest of them; with `lsn` those of this era at exactly this position.
select c.pipeline, c.lsn, c.attempt, c.tables, c.rows, c.published_at, c.era, c.cuts_snapshot_id
from penstock.cut as c
join penstock.pipeline as p on p.name = c.pipeline
where
    c.pipeline = %(name)s
    and (%(attempt)s::text is null or c.attempt = %(attempt)s)
    and (%(lsn)s::pg_lsn is null or (c.lsn = %(lsn)s and c.era = p.era))
order by c.number desc
limit %(limit)s
