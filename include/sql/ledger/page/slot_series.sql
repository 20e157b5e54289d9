-- The peaks of each step of time; empty steps are left out.
select
    date_bin(make_interval(secs => %(step)s), s.at, %(since)s) as at,
    max(s.unread) as unread, max(s.retained) as retained
from penstock.slot_sample as s
join penstock.pipeline as p on p.name = s.pipeline and p.slot = s.slot
where s.pipeline = %(name)s and s.at >= %(since)s and s.own
group by 1
order by 1
