-- Windows that may be forgotten: old, confirmed, merged by every table, and needed by no open rebuild. A paused table keeps
-- what it will need. It is always the front of the era's windows, so that what is left has no hole. Past eras need none.
select w.era, w.from_lsn, w.upto_lsn, w.bytes, case when w.era = p.era then w.max_xid end as max_xid
from penstock.window as w
join penstock.pipeline as p on p.name = w.pipeline
where
    w.pipeline = %(name)s
    and case
        when w.era < p.era then w.staged_at < %(before)s
        else
            w.confirmed_at < %(before)s
            and w.upto_lsn <= (select min(d.after) from penstock.table_due as d where d.pipeline = p.name)
            and not exists (select from penstock.load_due as r where r.pipeline = p.name and r.after < w.upto_lsn)
    end
order by w.era, w.from_lsn
