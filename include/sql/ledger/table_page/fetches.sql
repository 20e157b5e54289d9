-- Columns whose values are being fetched, or were.
select lsn, attnums, whole, state, rows, bytes, started_at, landed_at
from penstock.column_fetch
where pipeline = %(name)s and oid = %(oid)s
order by started_at desc
limit %(limit)s
