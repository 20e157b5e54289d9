-- Of this era, of all `past` ones, or of all; `since` and `before` are times between which one of its transactions may have committed.
select
    w.pipeline, w.from_lsn, w.upto_lsn, w.attempt, w.state, w.rows, w.bytes, w.transactions, w.messages, w.files,
    w.source_time, w.planned_at, w.staged_at, w.seconds, w.era, w.digest
from penstock.window as w
join penstock.pipeline as p on p.name = w.pipeline
where
    w.pipeline = %(name)s
    and (%(past)s::boolean is null or (w.era < p.era) = %(past)s)
    and (%(from_lsn)s::pg_lsn is null or w.from_lsn = %(from_lsn)s)
    and (%(after)s::pg_lsn is null or w.upto_lsn > %(after)s)
    and (%(through)s::pg_lsn is null or w.upto_lsn <= %(through)s)
    and (%(states)s::text[] is null or w.state = any(%(states)s))
    and (%(since)s::timestamptz is null or w.committed && tstzrange(%(since)s, %(before)s))
order by w.era, w.from_lsn
