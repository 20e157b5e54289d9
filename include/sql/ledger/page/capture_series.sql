-- What was captured, in equal steps of time; empty steps are left out.
select
    extract(epoch from date_bin(make_interval(secs => %(step)s), planned_at, %(since)s))::float8 as capture_time,
    sum(rows)::bigint as changes, max(seconds) as window_seconds
from penstock.window
where pipeline = %(name)s and planned_at >= %(since)s and state <> 'planned'
group by 1
order by 1
