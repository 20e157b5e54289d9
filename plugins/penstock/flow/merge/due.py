"""What a merge has to do: the changes, copies and rebuilt tables that the next cut can hold."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from penstock.errors import LakeError, Trouble
from penstock.flow import archives, table_status
from penstock.flow.context import Context
from penstock.flow.guards import running
from penstock.flow.merge import names
from penstock.flow.merge.table_plan import Fits, Landed, build_plan, landed_relations, windows_due
from penstock.jobs.plans import TablePlan
from penstock.lake.columns import columns_stamp
from penstock.ledger.merge_queue import MergeQueue
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.mapping import Fit
from penstock.units import several


def due(ctx: Context, *, force: bool = False, last: bool = False) -> MergeQueue | None:
    """Return what a merge has to do, None where it has nothing, and say it in the log; `force` and `last` are as in `plan`."""
    if not _open(ctx, last=last):
        ctx.progress("no merge is possible now: nothing to do")
        return None
    queue = _queue(ctx)
    changes, loads = _changes(queue), len(queue.rebuilds) + sum(bool(queue.replacing(each)) for each in queue.tables)
    leaving = any(table.left_lsn is not None for table in queue.tables)
    needed = (
        force
        or queue.marked
        or leaving
        or bool(changes or loads or evolved(queue) or queue.renames)
        or _stale(ctx, queue)
    )
    ctx.progress(
        f"{several(changes, 'change')} in {several(len(queue.windows), 'window')} and {loads} copied or rebuilt tables are due through {queue.upto}: "
        + ("merging" if needed else "nothing to do")
    )
    return queue if needed else None


def mergeable(ctx: Context, queue: MergeQueue) -> tuple[MergeQueue, list[TablePlan], Fits]:
    """Return what of a queue a cut can hold, the orders of rebuilt tables, and what landed files are, by path.

    Tables that cannot go on are paused. A rebuild whose last windows do not fit is given up, and its table is due as before. What is
    due then is read again.
    """
    known = landed_relations(ctx)
    while True:
        orders = _switches(ctx, queue, known)
        if orders is not None and not _pause_passed(ctx, queue):
            kept, fits = _fitting_tables(ctx, queue, known)
            if not queue.renames or (len(kept.tables) == len(queue.tables) and not names.pause_unnamed(ctx, queue)):
                return kept, orders, fits
        queue = _queue(ctx)


def _switches(ctx: Context, queue: MergeQueue, known: Landed) -> list[TablePlan] | None:
    """Return the orders for the tables that were rebuilt: their last windows, and their names. None where one was given up."""
    orders = []
    for each in queue.rebuilds:
        try:
            _require_archive(ctx, each)
            windows, copied = windows_due(queue.windows, each.through_lsn), each.cause == "first"
            orders.append(build_plan(ctx, each, windows, known, copied=copied))
        except LakeError as error:
            if error.slug != "schema-change":
                raise
            table_status.stop(ctx, _stopped(ctx, each), Trouble(error.slug, error.message, "copy"))
            return None
    left = {each.target for each in queue.renames}
    return [replace(order, vacated=order.target in left) for order in orders]


def _stopped(ctx: Context, load: LoadRecord) -> TableRecord | LoadRecord:
    """Return what stops where rows do not fit: what is rebuilt next to a table, or the table that has nothing but its first copy."""
    if load.cause != "first":
        return load
    return next(table for table in ctx.ledger.tables.all(ctx.name) if table.oid == load.oid)


def _require_archive(ctx: Context, rebuild: LoadRecord) -> None:
    """See that a rebuilt table has all rows that the lake is to keep; raises LakeError("schema-change")."""
    record = next((table for table in ctx.ledger.tables.all(ctx.name) if table.oid == rebuild.oid), None)
    if names := archives.lost_by(ctx, record, rebuild):
        raise LakeError(
            "schema-change",
            f"expected the rebuilt table to hold what {rebuild.qualified} keeps, but it lacks the rows of {', '.join(names)}, whose "
            "partitions the source lost meanwhile",
        )


def _pause_passed(ctx: Context, queue: MergeQueue) -> bool:
    """Pause the tables that were in no cut at the place where rows of dropped partitions go; return whether there were any."""
    passed = [table for table in queue.tables if table.state == "ready" and _passed(table, queue.upto)]
    for table in passed:
        reason = "a partition was dropped, and the cut at which its rows go from the lake was made without this table"
        table_status.stop(ctx, table, Trouble("schema-change", reason, "copy"))
    return bool(passed)


def _passed(table: TableRecord, upto: Lsn) -> bool:
    through = table.complete_through or Lsn(0)
    return any(each.lsn is not None and through < each.lsn < upto for each in table.accepted.leaving)


def _fitting_tables(ctx: Context, queue: MergeQueue, known: Landed) -> tuple[MergeQueue, Fits]:
    """Pause the tables whose landed files have columns that the lake's table cannot take; return the rest, and the fits by path."""
    kept, fits = list[TableRecord](), dict[str, Fit]()
    for table in queue.tables:
        found = {file.path: known.fit(table, file, window) for window, file in queue.placed(table)}
        reason = next((fit.reason for fit in found.values() if fit.reason is not None), None)
        if reason is None:
            kept.append(table)
            fits |= found
        else:
            table_status.stop(ctx, table, Trouble("schema-change", reason, "copy"))
    return replace(queue, tables=tuple(kept)), fits


def evolved(queue: MergeQueue) -> frozenset[int]:
    """Name the tables that have other columns than the last cut of them knew."""
    return frozenset(table.oid for table in queue.tables if table.lake_columns != columns_stamp(table.columns))


def _queue(ctx: Context) -> MergeQueue:
    """Read what is due; a table with values of a later snapshot waits until capture has come as far as that.

    What was copied or rebuilt stands for the table whose place it takes.
    """
    queue = ctx.ledger.merges.to_merge(ctx.name)
    ahead = {each.oid for each in queue.fetches if each.lsn > queue.upto}
    queue = names.with_free_names(ctx, queue)
    rebuilt = {each.oid for each in queue.rebuilds}
    tables = tuple(table for table in queue.tables if table.oid not in rebuilt | ahead)
    return replace(queue, tables=tables)


def _open(ctx: Context, *, last: bool) -> bool:
    """Return whether the pipeline can be merged now; raises LedgerError("pipeline-halted" | "not-bootstrapped")."""
    record = ctx.ledger.pipelines.get(ctx.name)
    if record.state == "bootstrapping":
        return False
    if last:
        return record.halted_from == "running"
    running(ctx)
    return True


def _stale(ctx: Context, queue: MergeQueue) -> bool:
    oldest = datetime.now(UTC) - timedelta(seconds=ctx.pipeline.merge.idle_cut)
    return queue.last_cut is not None and queue.last_cut.published_at < oldest


def _changes(queue: MergeQueue) -> int:
    entries = [entry for table in queue.tables for entry in queue.files(table)]
    for each in queue.rebuilds:
        windows = windows_due(queue.windows, each.through_lsn)
        entries += (entry for window in windows for entry in window.files if entry.oid == each.oid)
    return sum(entry.rows for entry in entries)
