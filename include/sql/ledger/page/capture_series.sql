-- What was captured, in equal steps of time; empty steps are left out.
select
    date_bin(make_interval(secs => %(step)s), planned_at, %(since)s) as at,
    sum(rows)::bigint as changes, max(seconds) as seconds
from penstock.window
where pipeline = %(name)s and planned_at >= %(since)s and state <> 'planned'
group by 1
order by 1
