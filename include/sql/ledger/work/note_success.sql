-- With the `last` task of its DAG, what earlier runs of the DAG failed at is over.
with
    over as (
        update penstock.task_outcome
        set failing_since = null, slug = null
        where
            %(last)s and pipeline = %(name)s and dag = %(dag)s and task <> %(task)s and run_id <> %(run_id)s
            and failing_since is not null
    )
insert into penstock.task_outcome (pipeline, dag, task, run_id)
select p.name, %(dag)s, %(task)s, %(run_id)s
from penstock.pipeline as p
where p.name = %(name)s
on conflict (pipeline, dag, task) do update
set run_id = excluded.run_id, ended_at = excluded.ended_at, failing_since = null, slug = null
