select dag, task, run_id, ended_at, failing_since, slug
from penstock.task_outcome
where pipeline = %(name)s
order by dag, task
