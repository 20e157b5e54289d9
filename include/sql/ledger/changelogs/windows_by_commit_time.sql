select
    w.pipeline, w.from_lsn, w.upto_lsn, w.attempt, w.state, w.rows, w.bytes, w.transactions, w.messages, w.files,
    w.settings_digest, w.source_time, w.planned_at, w.staged_at, w.confirmed_at, w.seconds, w.era, w.digest
from penstock.window as w
where
    w.pipeline = %(name)s
    and w.state <> 'planned'
    and w.committed && tstzrange(%(from_time)s, %(upto_time)s)
order by w.era, w.from_lsn
