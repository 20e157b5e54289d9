-- Columns whose values are being fetched, or were; or partitions of which whole rows are. A column that is gone is shown by its number.
select
    case when l.stays is null then named.columns else '{}' end as columns, l.leaves as partitions,
    l.state, l.rows, l.bytes, l.lsn, l.started_at, l.copied_at as landed_at
from penstock.load as l
join penstock.table as t on t.pipeline = l.pipeline and t.oid = l.oid
cross join lateral (
    select array(
        select coalesce(held ->> 'name', 'column ' || asked.attnum)
        from unnest(l.attnums) with ordinality as asked (attnum, number)
        left join jsonb_array_elements(t.columns) as held on (held ->> 'attnum')::int = asked.attnum
        order by asked.number
    ) as columns
) as named
where l.pipeline = %(name)s and l.oid = %(oid)s and l.cause in ('columns', 'partitions')
order by l.started_at desc
limit %(limit)s
