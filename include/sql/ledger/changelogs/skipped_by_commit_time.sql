-- The transactions that were left out and may have committed within an interval, with the times between which each did.
select s.era, s.lsn, s.xid, s.oids, lower(w.committed) as since, upper(w.committed) as until, w.staged_at
from penstock.skipped as s
join penstock.window as w
    on w.pipeline = s.pipeline and w.era = s.era and w.from_lsn <= s.lsn and s.lsn < w.upto_lsn
where
    s.pipeline = %(name)s
    and w.state <> 'planned'
    and w.committed && tstzrange(%(from_time)s, %(upto_time)s)
order by s.era, s.lsn
