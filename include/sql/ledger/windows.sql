select
    pipeline, from_lsn, upto_lsn, attempt, state, rows, bytes, transactions, messages, files, settings_digest,
    source_time, planned_at, staged_at, confirmed_at, seconds
from penstock.window
where
    pipeline = %(name)s
    and (%(from_lsn)s::pg_lsn is null or from_lsn = %(from_lsn)s)
    and (%(after)s::pg_lsn is null or upto_lsn > %(after)s)
    and (%(through)s::pg_lsn is null or upto_lsn <= %(through)s)
    and (%(states)s::text[] is null or state = any(%(states)s))
order by from_lsn
