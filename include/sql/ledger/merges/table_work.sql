-- What one cut, or those since a time, did to each table, as it is called now, the slowest first; `rows` are those since the newest.
select
    t.schema, t.name, sum(c.inserts)::bigint as inserts, sum(c.updates)::bigint as updates, sum(c.deletes)::bigint as deletes,
    sum(c.truncates)::bigint as truncates, (array_agg(c.rows order by c.cut desc))[1] as rows, sum(c.seconds) as seconds
from penstock.table_cut as c
join penstock.cut as of on of.number = c.cut
join penstock.table as t on t.pipeline = c.pipeline and t.oid = c.oid
where
    c.pipeline = %(name)s
    and (%(attempt)s::text is null or of.attempt = %(attempt)s)
    and (%(since)s::timestamptz is null or of.published_at >= %(since)s)
group by t.oid, t.schema, t.name
order by seconds desc, t.schema, t.name
