-- A table that is ready is as fresh as the lake, one that is paused as where it stopped; others are not in the lake. The cuts since the look
-- before are counted while they are there: of old ones one a day is kept. The first look counts none. A merge began when its attempt says.
insert into penstock.lake_sample
    (pipeline, median_seconds, worst_seconds, worst_oid, lake_bytes, landing_bytes, last_cut, cuts, changes, cut_seconds,
     merge_cpu_seconds, capture_cpu_seconds)
select
    p.name, fresh.median, fresh.worst, fresh.oid, lake.bytes, landed.bytes + copied.bytes, coalesce(newest.number, before.last_cut, 0),
    since.cuts, since.changes, since.seconds,
    (select s.cpu_seconds from penstock.spent as s where s.pipeline = p.name and s.dag = 'merge'),
    (select s.cpu_seconds from penstock.spent as s where s.pipeline = p.name and s.dag = 'capture')
from penstock.pipeline as p
left join lateral (
    select s.last_cut from penstock.lake_sample as s where s.pipeline = p.name order by s.at desc limit 1
) as before on true
cross join lateral (
    select
        percentile_cont(0.5) within group (order by behind.seconds) as median, max(behind.seconds) as worst,
        (array_agg(behind.oid order by behind.seconds desc, behind.oid))[1] as oid
    from (
        select t.oid, greatest(extract(epoch from %(at)s - case t.state when 'ready' then %(as_of)s else stopped.looked_at end), 0) as seconds
        from penstock.table as t
        left join lateral (
            select c.looked_at
            from penstock.source_clock as c
            where t.state = 'paused' and c.pipeline = p.name and c.era = p.era and c.lsn <= t.complete_through
            order by c.lsn desc
            limit 1
        ) as stopped on true
        where t.pipeline = p.name and t.state in ('ready', 'paused')
    ) as behind
    where behind.seconds is not null
) as fresh
cross join lateral (
    select sum(size.bytes)::bigint as bytes
    from penstock.table as t
    cross join lateral (
        select tc.bytes from penstock.table_cut as tc where tc.pipeline = t.pipeline and tc.oid = t.oid order by tc.cut desc limit 1
    ) as size
    where t.pipeline = p.name and t.state <> 'dropped'
) as lake
cross join lateral (
    select coalesce(sum(w.bytes), 0)::bigint as bytes from penstock.window as w where w.pipeline = p.name
) as landed
cross join lateral (
    select coalesce(sum(l.bytes), 0)::bigint as bytes
    from penstock.load as l
    where l.pipeline = p.name and l.era = p.era and l.cause in ('first', 'resync') and l.files is not null
) as copied
cross join lateral (
    select
        count(*) as cuts, coalesce(sum(c.rows), 0)::bigint as changes,
        coalesce(sum(extract(epoch from c.published_at - to_timestamp(left(c.attempt, 18), 'YYYYMMDD"t"HH24MISSMS'))), 0) as seconds
    from penstock.cut as c
    where c.pipeline = p.name and c.number > before.last_cut
) as since
left join lateral (
    select c.number from penstock.cut as c where c.pipeline = p.name order by c.number desc limit 1
) as newest on true
where p.name = %(name)s
