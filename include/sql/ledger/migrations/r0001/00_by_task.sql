-- Which task of Airflow is at work in this session, as {dag, run_id, task}; null where none is.
create function penstock.by_task() returns jsonb language sql stable as
$$
    select nullif(current_setting('penstock.task', true), '')::jsonb
$$
