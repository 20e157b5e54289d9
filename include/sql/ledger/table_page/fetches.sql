-- Columns whose values are being fetched, or were; with leaves whole rows of these.
select lsn, attnums, whole, stays is not null as of_rows, leaves, state, rows, bytes, started_at, landed_at
from penstock.column_fetch
where pipeline = %(name)s and oid = %(oid)s
order by started_at desc
limit %(limit)s
