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

from airflow.sdk import DAG

from penstock.config.model import Pipeline
from penstock.flow.sequences import BOOTSTRAP
from penstock.orchestration.dags import dag_arguments, dags
from penstock.orchestration.task_groups import sequence


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(**dag_arguments(pipeline, "bootstrap", __doc__), schedule=None) as dag:
        sequence(pipeline, BOOTSTRAP)
    return dag


globals().update(dags("bootstrap", build))
