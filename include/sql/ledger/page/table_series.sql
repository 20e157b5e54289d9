-- What cuts did to a table, in equal steps of time, with its size after the last of each; empty steps are left out.
select
    extract(epoch from date_bin(make_interval(secs => %(step)s), c.published_at, %(since)s))::float8 as time,
    sum(tc.inserts)::bigint as inserts, sum(tc.updates)::bigint as updates, sum(tc.deletes)::bigint as deletes,
    (array_agg(tc.rows order by tc.cut desc))[1] as rows, (array_agg(tc.bytes order by tc.cut desc))[1] as bytes
from penstock.table_cut as tc
join penstock.cut as c on c.number = tc.cut
where tc.pipeline = %(name)s and tc.oid = %(oid)s and c.published_at >= %(since)s
group by 1
order by 1
