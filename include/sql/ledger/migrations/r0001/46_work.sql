-- How far a task of Airflow is in a work with a known end, in parts of it, and in rows where these are counted; and the Spark
-- application that a merge keeps for what is landed next, `until` when if nothing is, with its cuts as `done`. It refers to no
-- pipeline, so that noting it waits for no transaction of one. A task that was killed leaves its row: whoever reads it asks Airflow
-- whether the task runs.
create table penstock.work (
    pipeline text not null,
    dag text not null,
    run_id text not null,
    task text not null,
    what text not null,
    done bigint not null,
    total bigint not null,
    rows bigint,
    first_done bigint not null,
    first_rows bigint,
    started_at timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp(),
    until timestamptz,
    primary key (pipeline, dag, task, what)
)
