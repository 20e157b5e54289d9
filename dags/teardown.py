"""### End a pipeline: drop its slot and publication, keep the lake

**Does** nothing but print what it would drop, until it is triggered with `dry_run` set to false.

**Afterwards** the source keeps no WAL for this pipeline, the lake's tables stay readable at the last cut, and the
landing zone stays. Starting again means `bootstrap`: a new slot and a new copy.

**Pause `capture` and `merge` first.** An active slot is never dropped, nor is a publication or slot that Penstock
did not make; the ledger knows which.
"""

from typing import Any

from airflow.sdk import DAG, task

from penstock.config.model import Pipeline
from penstock.orchestration.dags import dag_arguments, dags, dry_run
from penstock.orchestration.tasks import SOURCE_POOL, working


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "teardown", __doc__),
        schedule=None,
        params={"dry_run": dry_run()},
    ) as dag:

        @task(pool=SOURCE_POOL)
        def teardown(**context_: Any) -> list[str]:
            """Drop slot and publication, or print the statements."""
            from penstock.flow.recover import teardown as flow

            with working(pipeline) as ctx:
                return flow.teardown(ctx, dry_run=bool(context_["params"]["dry_run"]))

        teardown()
    return dag


globals().update(dags("teardown", build))
