-- Columns whose values are being fetched, or were; or partitions of which whole rows are. A column that is gone is shown by its number.
select
    case when f.stays is null then named.columns else '{}' end as columns, f.leaves as partitions,
    f.state, f.rows, f.bytes, f.lsn, f.started_at, f.landed_at
from penstock.column_fetch as f
join penstock.table as t on t.pipeline = f.pipeline and t.oid = f.oid
cross join lateral (
    select array(
        select coalesce(held ->> 'name', 'column ' || asked.attnum)
        from unnest(f.attnums) with ordinality as asked (attnum, number)
        left join jsonb_array_elements(t.columns) as held on (held ->> 'attnum')::int = asked.attnum
        order by asked.number
    ) as columns
) as named
where f.pipeline = %(name)s and f.oid = %(oid)s
order by f.started_at desc
limit %(limit)s
