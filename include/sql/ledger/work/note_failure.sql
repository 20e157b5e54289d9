-- What a task has said of its failure is not overwritten by what the DAG processor knows of the same run.
insert into penstock.task_outcome as known (pipeline, dag, task, run_id, failing_since, slug)
select p.name, %(dag)s, %(task)s, %(run_id)s, clock_timestamp(), %(slug)s
from penstock.pipeline as p
where
    p.name = %(name)s
    and not exists (
        select from penstock.task_outcome as said
        where
            said.pipeline = p.name and said.dag = %(dag)s and said.run_id = %(run_id)s and said.failing_since is not null
            and (%(task)s = '' or said.task = %(task)s)
    )
on conflict (pipeline, dag, task) do update
set
    run_id = excluded.run_id, ended_at = clock_timestamp(), slug = excluded.slug,
    failing_since = coalesce(known.failing_since, excluded.failing_since)
