select
    dag, run_id, task, what, done, total, rows, first_done, first_rows, started_at, seen_at,
    seen_at > clock_timestamp() - interval '1 minute' as fresh, until
from penstock.work
where pipeline = %(name)s
order by started_at, what
