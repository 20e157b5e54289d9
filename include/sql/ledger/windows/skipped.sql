-- The transactions of this era that were left out, or those of any that may have committed within an interval, each with the times
-- between which it did.
select s.lsn, s.xid, s.oids, s.known_lsn, lower(w.committed) as since, upper(w.committed) as until, s.era, w.staged_at
from penstock.skipped as s
join penstock.pipeline as p on p.name = s.pipeline
left join penstock.window as w
    on w.pipeline = s.pipeline and w.era = s.era and w.from_lsn <= s.lsn and s.lsn < w.upto_lsn and w.state <> 'planned'
where
    s.pipeline = %(name)s
    and case
        when %(from_time)s::timestamptz is null then s.era = p.era
        else w.committed && tstzrange(%(from_time)s, %(upto_time)s)
    end
order by s.era, s.lsn
