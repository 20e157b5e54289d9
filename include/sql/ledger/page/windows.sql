-- Windows without their files; `changes_per_second` is null for one that held no change.
select
    from_lsn, upto_lsn, (upto_lsn - from_lsn)::bigint as wal_bytes, state, rows as changes, bytes, transactions, seconds,
    nullif(rows, 0) / nullif(seconds, 0) as changes_per_second, planned_at, source_time, by_task as task
from penstock.window
where pipeline = %(name)s
order by era desc, from_lsn desc
limit %(limit)s
