"""Tasks that several DAGs share: the steps of bootstrap and recovery, a merge, build and switch (resync, replay)."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise
from typing import Any

from airflow.sdk import task

from penstock.config.model import Pipeline
from penstock.flow.sequences import CopyStep, MergeStep, SourceStep, Step
from penstock.orchestration.assets import alias, asset
from penstock.orchestration.operators import CopyOperator, MergeOperator, PenstockSparkOperator, SwitchOperator
from penstock.orchestration.tasks import SOURCE_POOL, context, outcome, working


def sequence(pipeline: Pipeline, steps: Iterable[Step]) -> Any:
    """Return the first of the tasks that carry these steps out, one after the other, inside a DAG."""
    chained = [_tasks(pipeline, step) for step in steps]
    for (_, before), (after, _) in pairwise(chained):
        before >> after
    return chained[0][0]


def _tasks(pipeline: Pipeline, step: Step) -> tuple[Any, Any]:
    """Return the first and the last task of one step."""
    match step:
        case SourceStep():
            asked = _asking(pipeline, step)
            return asked, asked
        case CopyStep():
            copy = CopyOperator(task_id=step.name, pipeline=pipeline, execution_timeout=timedelta(days=2))
            return copy, copy
        case MergeStep():
            return merging(pipeline, step)


def _asking(pipeline: Pipeline, step: SourceStep) -> Any:
    @task(task_id=step.name, pool=SOURCE_POOL, doc_md=step.run.__doc__)
    def ask() -> None:
        with working(pipeline) as ctx:
            step.run(ctx)

    return ask()


def rebuilding(pipeline: Pipeline, operator: type[PenstockSparkOperator]) -> Any:
    """Return the first of two tasks: build tables next to those that readers see, then let them take their names."""
    build = operator(task_id="build", pipeline=pipeline, execution_timeout=timedelta(days=2))
    build >> SwitchOperator(
        task_id="switch",
        pipeline=pipeline,
        rebuilds=build.output,
        outlets=[asset(pipeline, "lake"), alias(pipeline, "tables")],
        execution_timeout=timedelta(hours=6),
    )
    return build


def merging(pipeline: Pipeline, step: MergeStep) -> tuple[Any, Any]:
    """Return two tasks: Spark prepares what is due, and one step publishes it."""

    @task(task_id=step.publish, outlets=[asset(pipeline, "lake"), alias(pipeline, "tables")])
    def move(attempt: str | None, **context_: Any) -> str | None:
        """Move every table to the new cut in one step, unless nothing was due or all is published; return its LSN."""
        from penstock.flow.merge import run as merge
        from penstock.orchestration.assets import tell_of_cut
        from penstock.orchestration.notifications import deliver

        ctx = context(pipeline)
        if attempt is None:
            return None
        with outcome(ctx), merge.merge_lock(ctx):
            cut = merge.publish(ctx, attempt, last=step.last, deliver=deliver)
        tell_of_cut(ctx, context_, cut)
        return str(cut.lsn)

    spark = MergeOperator(
        task_id=step.prepare,
        pipeline=pipeline,
        last=step.last,
        lingers=step.lingers,
        outlets=[alias(pipeline, "tables")],
        execution_timeout=timedelta(hours=6),
    )
    return spark, move(spark.output)
