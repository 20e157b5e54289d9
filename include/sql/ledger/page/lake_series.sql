-- How the lake stood, in equal steps of time: the peaks of how far behind it was, its size at the end of a step, and what was done in it.
-- CPU is that of the tasks that ended: of their processes on Airflow's workers and of what these waited for, such as Spark's driver; it is
-- null where nothing was counted before.
select
    extract(epoch from date_bin(make_interval(secs => %(step)s), s.at, %(since)s))::float8 as lake_time,
    max(s.median_seconds) as behind_median_seconds, max(s.worst_seconds) as behind_worst_seconds,
    (array_agg(s.lake_bytes order by s.at desc))[1] as lake_bytes, (array_agg(s.landing_bytes order by s.at desc))[1] as landing_bytes,
    sum(s.cuts)::bigint as cuts, sum(s.changes)::bigint as cut_changes, sum(s.cut_seconds) as cut_seconds,
    sum(s.merge_cpu) as merge_cpu_seconds, sum(s.capture_cpu) as capture_cpu_seconds
from (
    select
        s.*,
        s.merge_cpu_seconds - lag(s.merge_cpu_seconds) over past as merge_cpu,
        s.capture_cpu_seconds - lag(s.capture_cpu_seconds) over past as capture_cpu
    from penstock.lake_sample as s
    where s.pipeline = %(name)s and s.at >= %(since)s
    window past as (order by s.at)
) as s
group by 1
order by 1
