"""Merge: decide what is due, give Spark its orders, and publish what Spark prepared as one cut.

Spark prepares, `publish` moves. There is one plan of what it merges: a cut of all tables, or the next chunk of what is built next to
them. Every plan belongs to a new attempt. An attempt at a cut fences off all older ones; one at a chunk those that were to advance
the same builds. An attempt that was overtaken can never publish, even if its Spark application outlived its task.
"""

from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import LakeError, LedgerError
from penstock.flow import landing_mark, table_status
from penstock.flow.context import Context
from penstock.flow.merge import lake_state
from penstock.flow.merge.attempts import built_share, job, merge_lock, watched
from penstock.flow.merge.due import due, evolved, mergeable
from penstock.flow.merge.publish import adopt_half_published, cuts_snapshot, publish, publish_chunks
from penstock.flow.merge.table_plan import (
    Landed,
    LandedFiles,
    build_plan,
    chunk,
    landed_relations,
    table_plan,
    windows_due,
    with_pointers,
)
from penstock.flow.spark_job import Submit, carried_out, plan_frame
from penstock.jobs.plans import MergePlan, TablePlan
from penstock.landing import layout
from penstock.ledger import new_attempt
from penstock.ledger.records import WindowRecord
from penstock.ledger.table_records import LoadRecord
from penstock.lsn import Lsn
from penstock.units import several


def merge(ctx: Context, submit: Submit, *, force: bool = False, last: bool = False) -> str | None:
    """Merge what is due and publish it, under the lock of the lake; return the attempt, or None when nothing was due.

    `force` and `last` are as in `plan`. Raises what `plan`, Spark and `publish` raise, and LedgerError("work-under-way").
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
    """Write the orders of a new attempt at a cut of all that is due; return the attempt, or None where nothing is.

    `force` asks for a cut even then. The `last` of an era is that of a pipeline that is halted: what was landed before its slot was left
    behind.
    """
    with ctx.ledger.session():
        landing_mark.require(ctx)
        orders = _cut(ctx, force=force, last=last)
        if orders is None:
            return None
        ctx.landing.write_text(layout.plan_file(ctx.name, orders.attempt), orders.dumps())
        return orders.attempt


def _cut(ctx: Context, *, force: bool, last: bool) -> MergePlan | None:
    ctx.ledger.pipelines.take_place(ctx.name, ctx.pipeline.lake_place)
    adopt_half_published(ctx)
    if last and (problem := lake_state.problem(ctx)):
        ctx.progress(f"what is landed comes with the copies, it cannot be merged first: {problem}")
        return None
    found = due(ctx, force=force, last=last)
    if found is None:
        return None
    attempt = ctx.ledger.merges.begin(ctx.name, halted=last)
    last_cut = cuts_snapshot(ctx)
    if last_cut != (found.last_cut.cuts_snapshot_id if found.last_cut else None):
        raise LedgerError(
            "ledger-conflict",
            f"expected no cut of {ctx.name} while one was planned, but another run has published one; merge again",
        )
    queue, switches, fits = mergeable(ctx, found)
    wider, landed = evolved(queue), LandedFiles(ctx)
    planned = [table_plan(each, queue, fits, landed, evolve=each.oid in wider) for each in queue.tables]
    tables, shown = with_pointers(ctx, queue, planned + switches)
    complete = ctx.ledger.windows.complete_time(ctx.name, queue.upto)
    first = min((table.complete_through or Lsn(0) for table in queue.tables), default=queue.upto)
    return replace(
        _orders(ctx, attempt, tables, queue.pipeline.era, (first, queue.upto)),
        cut=True,
        cuts_expected_snapshot=last_cut,
        cuts_shown=shown,
        cuts_anew=any(each.fresh for each in tables),
        source_time=complete.isoformat() if complete else None,
        renames=queue.renames,
    )


def plan_chunks(ctx: Context, loads: Sequence[LoadRecord]) -> tuple[MergePlan | None, list[str]]:
    """Order the next chunk of each load that is built, in a new attempt: its copy where that is not loaded yet, and the windows since.

    Also return why some were given up, whose rows do not fit; no orders where all were. Raises LakeError("range-unavailable") for a file
    that is not there.
    """
    with ctx.ledger.session():
        landing_mark.require(ctx)
        pipeline = ctx.ledger.pipelines.get(ctx.name)
        position = pipeline.position or Lsn(0)
        first = min(each.after or position for each in loads)
        windows = [window for window in ctx.ledger.windows.all(ctx.name, after=first) if window.upto_lsn <= position]
        known, tables, lost = landed_relations(ctx), dict[str, TablePlan](), list[str]()
        for each in loads:
            try:
                tables[each.id] = _chunk(ctx, each, windows, known, position)
            except LakeError as error:
                if error.slug == "schema-change":
                    table_status.give_up(ctx, each, error.message)
                    lost.append(error.message)
                    continue
                if error.slug != "landing-file-missing":
                    raise
                # what is merged already is missed by this rebuild alone: no reason to halt the pipeline
                raise LakeError("range-unavailable", f"{error.message}: resync {each.qualified}") from None
        if not tables:
            return None, lost
        orders = _orders(ctx, new_attempt(), [*tables.values()], pipeline.era, (first, position))
        ctx.landing.write_text(layout.plan_file(ctx.name, orders.attempt), orders.dumps())
        ctx.ledger.loads.run(ctx.name, ids=[*tables], run=orders.attempt)
        return orders, lost


def _chunk(ctx: Context, load: LoadRecord, windows: Sequence[WindowRecord], known: Landed, position: Lsn) -> TablePlan:
    end = position if load.goal_lsn is None else load.goal_lsn
    copied = load.through_lsn is None
    due_ = windows_due(windows, load.after, load.goal_lsn)
    chosen = chunk(due_, load.oid, most_bytes=ctx.pipeline.merge.rebuild_bytes)
    through = end if len(chosen) == len(due_) else chosen[-1].upto_lsn
    ctx.progress(
        f"{load.qualified}: {'the copy and ' if copied else ''}{len(chosen)} of {several(len(due_), 'window')} next, "
        f"through {through}; {several(load.built_rows, 'row')} so far"
    )
    ctx.stage(*built_share(load, load.through_lsn, end))
    return build_plan(ctx, load, chosen, known, copied=copied, through=through)


def _orders(ctx: Context, attempt: str, tables: Sequence[TablePlan], era: int, between: tuple[Lsn, Lsn]) -> MergePlan:
    """Return the orders of an attempt that records no cut."""
    pipeline = ctx.pipeline
    from_lsn, upto_lsn = between
    return MergePlan(
        namespace=pipeline.namespace,
        from_lsn=from_lsn,
        upto_lsn=upto_lsn,
        tables=tuple(tables),
        skip_commit_lsns=tuple(Lsn.parse(text) for text in pipeline.merge.skip_transactions),
        on_conflict=pipeline.merge.on_conflict,
        on_misfit=pipeline.merge.on_misfit,
        cut=False,
        **plan_frame(ctx, attempt, era),
    )


__all__ = ["due", "job", "merge", "merge_lock", "plan", "plan_chunks", "prepare", "publish", "publish_chunks"]
