-- What the cuts of a span of time did to each table, the slowest first.
select
    t.schema, t.name, sum(c.inserts)::bigint as inserts, sum(c.updates)::bigint as updates, sum(c.deletes)::bigint as deletes,
    sum(c.seconds) as seconds
from penstock.table_cut as c
join penstock.cut as of on of.number = c.cut
join penstock.table as t on t.pipeline = c.pipeline and t.oid = c.oid
where c.pipeline = %(name)s and of.published_at >= %(since)s
group by t.oid, t.schema, t.name
order by seconds desc, t.schema, t.name
