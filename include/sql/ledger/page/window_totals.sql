-- The windows of the present era by state, and how many end after the newest cut, those without changes too.
select coalesce(jsonb_object_agg(state, windows), '{}') as windows, coalesce(sum(unmerged), 0)::bigint as unmerged
from (
    select w.state, count(*) as windows, count(*) filter (where w.state <> 'planned' and w.upto_lsn > coalesce(last.lsn, '0/0')) as unmerged
    from penstock.window as w
    join penstock.pipeline as p on p.name = w.pipeline and p.era = w.era
    left join lateral (
        select c.lsn from penstock.cut as c where c.pipeline = p.name and c.era = p.era order by c.number desc limit 1
    ) as last on true
    where w.pipeline = %(name)s
    group by w.state
) as counted
