"""### Merge all staged windows into the lake's tables, and publish them as one cut

**Does** plan -> Spark -> publish. Spark stages every table; `publish` then moves all
tables, `_penstock_cuts` and the ledger in one transaction, so that a reader never sees an order without its lines.

**Runs** when capture has landed something, and at the times of `merge.schedule`; each run takes everything that is
due, in order, whatever woke it. Set `force` to publish a cut even when nothing has changed.

**Lingers** where `merge.linger` says so: the task `spark` keeps its application, publishes its cut itself, and makes further
cuts as captures land changes. It ends when nothing comes for so long, or when another task waits for the pool.

**Safe to repeat, to clear, to kill.** Every try is a new attempt, and an older attempt can never
publish, even if its Spark application outlived its task.

**If it fails:** a table with a problem of its own is paused with the reason, all others continue. An error of the
whole run is retried; `publish-conflict` means that another writer moved a table: the next run starts over.
"""

from typing import Any

from airflow.sdk import DAG, AssetOrTimeSchedule, CronTriggerTimetable, Param, task

from penstock.config.model import Pipeline
from penstock.flow.sequences import MergeStep
from penstock.orchestration.assets import asset
from penstock.orchestration.dags import dag_arguments, dags
from penstock.orchestration.task_groups import merging
from penstock.orchestration.tasks import working


def schedule(pipeline: Pipeline) -> Any:
    """Return what wakes the merge: landed changes, and the clock."""
    if pipeline.merge.schedule is None:
        return [asset(pipeline, "landing")]
    times = CronTriggerTimetable(pipeline.merge.schedule, timezone="UTC")
    return AssetOrTimeSchedule(timetable=times, assets=[asset(pipeline, "landing")])


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "merge", __doc__),
        schedule=schedule(pipeline),
        params={"force": Param(False, type="boolean", description="publish a cut even when nothing has changed")},
    ) as dag:

        @task.short_circuit
        def plan(**context_: Any) -> bool:
            """Say what is due; nothing due ends the run here."""
            from penstock.flow.merge import run as flow

            with working(pipeline) as ctx:
                return flow.due(ctx, force=bool(context_["params"]["force"])) is not None

        spark, _ = merging(pipeline, MergeStep("spark", "publish", lingers=True))
        plan() >> spark
    return dag


globals().update(dags("merge", build))
