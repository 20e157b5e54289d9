select
    coalesce(jsonb_object_agg(state, windows), '{}') as windows,
    coalesce(sum(unmerged), 0)::bigint as unmerged_windows,
    coalesce(sum(unmerged_rows), 0)::bigint as unmerged_rows
from (
    select
        state,
        count(*) as windows,
        count(*) filter (where due) as unmerged,
        sum(rows) filter (where due) as unmerged_rows
    from (
        select w.state, w.rows, w.state <> 'planned' and w.upto_lsn > coalesce(last.lsn, '0/0') as due
        from penstock.window as w
        join penstock.pipeline as p on p.name = w.pipeline and p.era = w.era
        left join lateral (
            select c.lsn from penstock.cut as c where c.pipeline = p.name and c.era = p.era order by c.number desc limit 1
        ) as last on true
        where w.pipeline = %(name)s
    ) as each
    group by state
) as totals
