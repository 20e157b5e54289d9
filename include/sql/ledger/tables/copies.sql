select pipeline, id, oid, snapshot, lsn, state, files, rows, bytes, started_at, finished_at, needs_after, attnums
from penstock.copy
where
    pipeline = %(name)s
    and (%(id)s::text is null or id = %(id)s)
    and (%(oid)s::oid is null or oid = %(oid)s)
    and (%(state)s::text is null or state = %(state)s)
order by started_at, id, oid
