select pipeline, lsn, attempt, tables, rows, published_at, era, cuts_snapshot_id
from penstock.cut
where pipeline = %(name)s and (%(attempt)s::text is null or attempt = %(attempt)s)
order by number desc
limit %(limit)s
