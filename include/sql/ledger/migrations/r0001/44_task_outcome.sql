-- How each task of a pipeline's DAGs ended last. `failing_since`: since when its runs fail, null where the last one did not;
-- `run_id` is the last run, `slug` its error where that has one. The task '' stands for runs of which Airflow only says that they failed.
create table penstock.task_outcome (
    pipeline text not null references penstock.pipeline on delete cascade,
    dag text not null,
    task text not null,
    run_id text not null,
    ended_at timestamptz not null default clock_timestamp(),
    failing_since timestamptz,
    slug text,
    primary key (pipeline, dag, task)
)
