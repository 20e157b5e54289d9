-- A DAG's last task has succeeded: what earlier runs of the DAG failed at is over.
update penstock.task_outcome
set failing_since = null, slug = null
where pipeline = %(name)s and dag = %(dag)s and run_id <> %(run_id)s and failing_since is not null
