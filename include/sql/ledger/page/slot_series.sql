-- The peaks of each step of time; empty steps are left out.
select
    extract(epoch from date_bin(make_interval(secs => %(step)s), s.at, %(since)s))::float8 as slot_time,
    max(s.unread) as unread_bytes, max(s.retained) as retained_bytes
from penstock.slot_sample as s
join penstock.pipeline as p on p.name = s.pipeline and p.slot = s.slot
where s.pipeline = %(name)s and s.at >= %(since)s and s.own
group by 1
order by 1
