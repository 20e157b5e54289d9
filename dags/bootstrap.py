"""### Bring a database into the lake: once, by hand

**Does** preflight -> publication -> slot with its exported snapshot -> copy of every table -> first cut.

**Safe to repeat.** Each step looks at what is already there. If it fails in the middle, fix what the message
names and trigger the DAG again (or clear the failed task): finished tables stay finished, the others are copied
under a snapshot of their own, and the merge drops exactly the changes which that snapshot had already seen.

**Costs** one reading of every published table on the source, in parallel `ctid` ranges; the slot keeps WAL from
its creation on, so unpause `capture` as soon as this DAG has created it.

**If it fails:** `check` prints a report with the next step for each finding; every error names its page in
`docs/runbooks/`.
"""

from __future__ import annotations

from airflow.sdk import DAG, task

from penstock.config import Pipeline
from penstock.flow import check as preflight
from penstock.flow.copy import bootstrap as steps
from penstock.orchestration.dag_defaults import SOURCE_POOL, dag_arguments, outcome
from penstock.orchestration.pipelines import context, dags
from penstock.orchestration.task_groups import copying


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(**dag_arguments(pipeline, "bootstrap", __doc__), schedule=None) as dag:

        @task(pool=SOURCE_POOL)
        def check() -> None:
            """Ask the source whether it is ready; the report is in the log."""
            ctx = context(pipeline)
            with outcome(ctx):
                preflight.require(ctx)

        @task(pool=SOURCE_POOL)
        def publication() -> str:
            """Create or adopt the publication: it must exist before the slot."""
            ctx = context(pipeline)
            with outcome(ctx):
                return steps.prepare(ctx)

        copy, _ = copying(pipeline)
        check() >> publication() >> copy
    return dag


globals().update(dags("bootstrap", build))
