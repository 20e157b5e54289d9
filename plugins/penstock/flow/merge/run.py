"""Merge: decide what is due, give Spark its orders, and publish what Spark prepared as one cut.

Spark prepares, `publish` moves. Every plan belongs to a new attempt; an attempt that was
overtaken can never publish, even if its Spark application outlived its task.
"""

from __future__ import annotations

from penstock.flow import landing_mark
from penstock.flow.context import Context
from penstock.flow.merge import lake_state
from penstock.flow.merge.due import due, evolved, ready_queue
from penstock.flow.merge.kept_spark import merge_job as job
from penstock.flow.merge.lake_lock import merge_lock
from penstock.flow.merge.publish import adopt_half_published, cuts_snapshot, publish
from penstock.flow.merge.table_plan import LandedFiles, table_plan, with_pointers
from penstock.flow.merge.watch import watched
from penstock.flow.spark_job import Submit, carried_out
from penstock.jobs.merge_plan import MergePlan
from penstock.landing import layout
from penstock.lsn import Lsn


def merge(ctx: Context, submit: Submit, *, force: bool = False, last: bool = False) -> str | None:
    """Merge what is due and publish it, under the lock of the lake; return the attempt, or None when nothing was due.

    `last` is as in `plan`. Raises what `plan`, Spark and `publish` raise, and LedgerError("work-under-way").
    """
    with merge_lock(ctx):
        attempt = prepare(ctx, submit, force=force, last=last)
        if attempt is not None:
            publish(ctx, attempt, last=last)
        return attempt


def prepare(ctx: Context, submit: Submit, *, force: bool = False, last: bool = False) -> str | None:
    """Let Spark prepare what is due; nothing becomes visible. Return the attempt to publish, or None."""
    attempt = plan(ctx, force=force, last=last)
    if attempt is not None:
        with watched(ctx, attempt):
            carried_out(ctx, submit, job(ctx, attempt))
    return attempt


def plan(ctx: Context, *, force: bool = False, last: bool = False) -> str | None:
    """Write the orders of a new attempt; return the attempt, or None when nothing is due.

    The `last` merge of an era is that of a pipeline that is halted: what was landed before its slot was left behind.
    """
    with ctx.ledger.session():
        landing_mark.require(ctx)
        ctx.ledger.pipelines.take_place(ctx.name, ctx.pipeline.lake_place)
        return _plan(ctx, force=force, last=last)


def _plan(ctx: Context, *, force: bool, last: bool) -> str | None:
    adopt_half_published(ctx)
    if last and (problem := lake_state.problem(ctx)):
        ctx.progress(f"what is landed comes with the copies, it cannot be merged first: {problem}")
        return None
    if not due(ctx, force=force, last=last):
        return None
    attempt = ctx.ledger.merges.begin(ctx.name, halted=last)
    queue, switches, fits = ready_queue(ctx)
    settings, wider = ctx.pipeline.merge, evolved(queue)
    complete, landed = ctx.ledger.windows.complete_time(ctx.name, queue.upto), LandedFiles(ctx)
    tables, cuts = with_pointers(
        ctx,
        queue,
        [table_plan(ctx, each, queue, fits, landed, evolve=each.oid in wider) for each in queue.tables] + switches,
    )
    orders = MergePlan(
        pipeline=ctx.name,
        attempt=attempt,
        catalog=ctx.pipeline.lake.catalog,
        namespace=ctx.pipeline.namespace,
        from_lsn=min((table.complete_through or Lsn(0) for table in queue.tables), default=queue.upto),
        upto_lsn=queue.upto,
        tables=tables,
        skip_commit_lsns=tuple(Lsn.parse(text) for text in settings.skip_transactions),
        on_conflict=settings.on_conflict,
        on_misfit=settings.on_misfit,
        parallel_tables=ctx.pipeline.spark.parallel_tables,
        table_properties=dict(ctx.pipeline.lake.properties),
        cuts_expected_snapshot=cuts_snapshot(ctx),
        cuts_shown=cuts,
        cuts_anew=any(each.fresh or each.copy_files is not None for each in tables),
        source_time=complete.isoformat() if complete else None,
        era=queue.pipeline.era,
        landing_uri=ctx.pipeline.landing.uri,
        landing_options=dict(ctx.pipeline.landing.options),
        task_memory=ctx.pipeline.spark.task_memory,
        renames=queue.renames,
    )
    ctx.landing.write_text(layout.plan_file(ctx.name, attempt), orders.dumps())
    return attempt


__all__ = ["due", "job", "merge", "plan", "prepare", "publish"]
