"""Tasks that several DAGs share: the steps of bootstrap and recovery, a merge, build and switch (resync, replay)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from airflow.sdk import task

from penstock.config.model import Pipeline
from penstock.flow.context import Context
from penstock.flow.sequences import CopyStep, MergeStep, SourceStep, Step
from penstock.orchestration.assets import alias, asset
from penstock.orchestration.operators import PenstockSparkOperator, Work
from penstock.orchestration.tasks import BACKFILL_POOL, SOURCE_POOL, context, outcome, working

if TYPE_CHECKING:
    from penstock.flow.spark_job import Submit


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
            timeout = timedelta(days=2)
            copy = PenstockSparkOperator(task_id=step.name, pipeline=pipeline, work=_copy, execution_timeout=timeout)
            return copy, copy
        case MergeStep():
            return merging(pipeline, step)


def _asking(pipeline: Pipeline, step: SourceStep) -> Any:
    @task(task_id=step.name, pool=SOURCE_POOL, doc_md=step.run.__doc__)
    def ask() -> None:
        with working(pipeline) as ctx:
            step.run(ctx)

    return ask()


def _copy(ctx: Context, _: Any, submit: Submit) -> list[str]:
    """Copy every table that has no copy yet, under a snapshot that this task keeps open; return the tables copied by this try."""
    from penstock.flow.load import bootstrap
    from penstock.orchestration import table_choices

    copied = bootstrap.copy(ctx, submit)
    table_choices.note(ctx)
    return copied


def rebuilding(pipeline: Pipeline, work: Work) -> Any:
    """Return the first of two tasks: build tables next to those that readers see, then let them take their names.

    `work` returns the rebuilds; another try continues with what this one leaves.
    """
    build = PenstockSparkOperator(
        task_id="build", pipeline=pipeline, work=work, pool=BACKFILL_POOL, execution_timeout=timedelta(days=2)
    )
    build >> PenstockSparkOperator(
        task_id="switch",
        pipeline=pipeline,
        work=_switch,
        outlets=[asset(pipeline, "lake"), alias(pipeline, "tables")],
        execution_timeout=timedelta(hours=6),
    )
    return build


def _switch(ctx: Context, context: Any, submit: Submit) -> bool:
    """Merge until the tables that were rebuilt have taken their names; shadows have none to take. Return whether all are done."""
    from penstock.flow.load import run as rebuild
    from penstock.orchestration.assets import tell_of_cut

    done = rebuild.switch(ctx, context["ti"].xcom_pull(task_ids="build"), submit)
    if cut := ctx.ledger.merges.last_cut(ctx.name):
        tell_of_cut(ctx, context, cut, measured=False)
    return done


def merging(pipeline: Pipeline, step: MergeStep) -> tuple[Any, Any]:
    """Return two tasks: Spark prepares what is due, and one step publishes it. Nothing becomes visible before that.

    The `last` merge of an era is left out where the DAG's param `merge_first` is false. One that `lingers` publishes by itself what it and
    its successors in the same Spark application prepare, where `merge.linger` says so.
    """

    def prepare(ctx: Context, context_: Any, submit: Submit) -> str | None:
        """Return the attempt that may be published, or None when nothing was due or all is published."""
        from penstock.flow.merge import linger
        from penstock.flow.merge import run as merge

        params = context_["params"]
        if step.last and not params["merge_first"]:
            return None
        force = bool(params.get("force", False))
        if step.lingers and linger.lingers(ctx):
            _linger(ctx, context_, submit, force=force)
            return None
        with merge.merge_lock(ctx):
            return merge.prepare(ctx, submit, force=force, last=step.last)

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

    spark = PenstockSparkOperator(
        task_id=step.prepare,
        pipeline=pipeline,
        work=prepare,
        outlets=[alias(pipeline, "tables")],
        execution_timeout=timedelta(hours=6),
    )
    return spark, move(spark.output)


def _linger(ctx: Context, context_: Any, submit: Submit, *, force: bool) -> None:
    from penstock.flow.merge import linger
    from penstock.orchestration.assets import tell_of_cut
    from penstock.orchestration.notifications import deliver
    from penstock.orchestration.other_dags import WaitingTasks

    linger.Lingering(
        ctx,
        submit,
        published=lambda cut: tell_of_cut(ctx, context_, cut),
        why_end=WaitingTasks(context_["ti"]).why_end,
        deliver=deliver,
    ).run(force=force)
