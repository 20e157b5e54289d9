select pipeline, id, oid, lsn, attnums, whole, stays, state, files, rows, bytes
from penstock.column_fetch
where pipeline = %(name)s and (%(after)s::pg_lsn is null or lsn > %(after)s)
order by lsn, oid
