insert into penstock.work as known (pipeline, dag, run_id, task, what, done, total, rows, first_done, first_rows, until)
values (%(name)s, %(dag)s, %(run_id)s, %(task)s, %(what)s, %(done)s, %(total)s, %(rows)s, %(done)s, %(rows)s, %(until)s)
on conflict (pipeline, dag, task, what) do update
set
    done = excluded.done, total = excluded.total, rows = excluded.rows, until = excluded.until, seen_at = clock_timestamp(),
    first_rows = coalesce(known.first_rows, excluded.rows)
