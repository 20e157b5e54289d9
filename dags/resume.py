"""### Let a halted pipeline, or one paused table, continue after its repair: by hand

**Does** look whether the cause is gone, and end the halt; with `table` set, the pause of that table. Where the cause is
still there it refuses and says which.

**Safe to repeat.** It repairs nothing: the runbook of the error that stopped the pipeline or table says how.

**If it fails:** the message is that of the error that would stop it again. Where the slot or its changes are gone, no
repair brings them back: trigger `recover`.
"""

from typing import Any

from airflow.sdk import DAG, task

from penstock.config.model import Pipeline
from penstock.orchestration.dags import dag_arguments, dags
from penstock.orchestration.table_choices import table_param
from penstock.orchestration.tasks import SOURCE_POOL, working


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "resume", __doc__),
        schedule=None,
        params={"table": table_param(pipeline, "resume this paused table, as schema.table; else the pipeline")},
    ) as dag:

        @task(pool=SOURCE_POOL)
        def resume(**context_: Any) -> None:
            """Look whether the cause is gone, and let it continue."""
            from penstock.flow.recover import resume as flow

            table = context_["params"]["table"]
            with working(pipeline) as ctx:
                if table:
                    flow.resume_table(ctx, table)
                else:
                    flow.resume(ctx)

        resume()
    return dag


globals().update(dags("resume", build))
