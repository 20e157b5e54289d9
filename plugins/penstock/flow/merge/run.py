"""Merge: decide what is due, give Spark its orders, and publish what Spark prepared as one cut.

Spark prepares, `publish` moves. Every plan belongs to a new attempt on a branch of its own; an attempt that was
overtaken can never publish, even if its Spark application outlived its task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from penstock.errors import LakeError
from penstock.flow.capture import schema_drift
from penstock.flow.capture.run import running
from penstock.flow.context import Context
from penstock.flow.health import table_alarms
from penstock.flow.health.alerts import Deliver
from penstock.flow.merge import rebuild_plan
from penstock.flow.merge.table_plan import table_plan, with_pointers
from penstock.flow.spark_job import SparkJob, catalog_secrets, describe
from penstock.jobs.merge_plan import CONFLICTS, MET, MergePlan, MergeResult, TablePlan, TableResult
from penstock.jobs.pointers import Place, Pointer, place_of
from penstock.landing import layout
from penstock.landing.manifest import FileEntry
from penstock.ledger import iceberg_pointers
from penstock.ledger.records import CutRecord, MergeQueue, PausedTable, PublishedTable, RebuildRecord, TableRecord
from penstock.lsn import Lsn


def due(ctx: Context, *, force: bool = False, last: bool = False) -> bool:
    """Tell whether a merge has anything to do, and say it in the log; `last` is as in `plan`."""
    if not _open(ctx, last=last):
        ctx.progress("no merge is possible now: nothing to do")
        return False
    queue = _queue(ctx)
    changes, loads = _changes(queue), _loads(queue) + len(queue.rebuilds)
    leaving = any(table.left_lsn is not None for table in queue.tables)
    needed = force or queue.marked or leaving or bool(changes or loads or _evolved(queue)) or _stale(ctx, queue)
    ctx.progress(
        f"{changes} changes in {len(queue.windows)} windows and {loads} copied or rebuilt tables are due through {queue.upto}: "
        + ("merging" if needed else "nothing to do")
    )
    return needed


def plan(ctx: Context, *, force: bool = False, last: bool = False) -> str | None:
    """Write the orders of a new attempt; return the attempt, or None when nothing is due.

    The `last` merge of an era is that of a pipeline that is halted: what was landed before its slot was left behind.
    """
    adopt_half_published(ctx)
    if not due(ctx, force=force, last=last):
        return None
    attempt = ctx.ledger.merges.begin(ctx.name, halted=last)
    queue, switches = _with_switches(ctx)
    queue = _pause_reshaped(ctx, queue)
    settings, evolved = ctx.pipeline.merge, _evolved(queue)
    complete = ctx.ledger.windows.complete_time(ctx.name, queue.upto)
    orders = MergePlan(
        pipeline=ctx.name,
        attempt=attempt,
        branch=f"penstock_{attempt}",
        catalog=ctx.pipeline.lake.catalog,
        namespace=ctx.pipeline.namespace,
        from_lsn=min((table.complete_through or Lsn(0) for table in queue.tables), default=queue.upto),
        upto_lsn=queue.upto,
        tables=with_pointers(
            ctx, queue, [table_plan(ctx, each, queue, evolve=each.oid in evolved) for each in queue.tables] + switches
        ),
        skip_commit_lsns=tuple(Lsn.parse(text) for text in settings.skip_transactions),
        on_conflict=settings.on_conflict,
        on_misfit=settings.on_misfit,
        parallel_tables=ctx.pipeline.spark.parallel_tables,
        table_properties=dict(ctx.pipeline.lake.properties),
        cuts_expected_snapshot=_cuts_snapshot(ctx, queue.last_cut),
        source_time=complete.isoformat() if complete else None,
        era=queue.pipeline.era,
    )
    ctx.landing.write_text(plan_path(ctx, attempt), orders.dumps())
    return attempt


def job(ctx: Context, attempt: str) -> SparkJob:
    """Describe the Spark application that carries out an attempt."""
    arguments = (
        "--plan",
        ctx.landing.uri(plan_path(ctx, attempt)),
        "--result",
        ctx.landing.uri(result_path(ctx, attempt)),
    )
    return describe(ctx, "merge_changes", arguments, catalog_secrets(ctx))


def publish(ctx: Context, attempt: str, *, last: bool = False, deliver: Deliver | None = None) -> CutRecord:
    """Move all tables of an attempt, the cuts table and the ledger in one step; repeating it changes nothing.

    A table of which changes met other rows than they should is an alarm, which slot health tells where `deliver` does not.
    """
    orders = MergePlan.loads(ctx.landing.read_text(plan_path(ctx, attempt)))
    result = read_result(ctx, attempt)
    _require_rebuilt(ctx, orders, result)
    paused = [PausedTable(t.oid, t.paused_slug, t.paused_reason or "") for t in result.tables if t.paused_slug]
    cut = ctx.ledger.merges.publish(
        ctx.name,
        attempt=attempt,
        catalog=ctx.catalog,
        catalog_name=orders.catalog,
        pointers=_pointers(result),
        lsn=Lsn(result.upto_lsn),
        tables=_published(orders, result, _loaded(ctx, orders)),
        paused=paused,
        rows=_rows(result),
        halted=last,
        still=_still(orders, result),
        cuts_snapshot_id=result.cuts_snapshot_id,
    )
    _watch_conflicts(ctx, orders, result, deliver)
    for table in paused:
        ctx.progress(f"paused table {table.oid}: [{table.slug}] {table.reason}")
    ctx.progress(f"published cut {cut.lsn}: {sum(t.pointer is not None for t in result.tables)} tables moved")
    return cut


def _watch_conflicts(ctx: Context, orders: MergePlan, result: MergeResult, deliver: Deliver | None) -> None:
    """Open and close alarms where this cut has met conflicts, or has brought tables that were copied."""
    met = {table.oid for table in result.tables if any(table.counts.get(name) for name in CONFLICTS)}
    copied = {table.oid for table in orders.tables if table.fresh or table.copy_files is not None}
    if met or copied:
        table_alarms.update(ctx, met | copied, deliver)


def adopt_half_published(ctx: Context) -> None:
    """Record the cut of a publisher that died after the catalog's commit and before the ledger's, in two databases."""
    attempt = prepared(ctx)
    if attempt is None:
        return
    orders, result = MergePlan.loads(ctx.landing.read_text(plan_path(ctx, attempt))), read_result(ctx, attempt)
    if iceberg_pointers.moved(ctx.catalog, orders.catalog, _pointers(result)):
        lsn, tables = Lsn(result.upto_lsn), _published(orders, result, _loaded(ctx, orders))
        ctx.ledger.merges.adopt_published(
            ctx.name,
            attempt=attempt,
            lsn=lsn,
            tables=tables,
            rows=_rows(result),
            cuts_snapshot_id=result.cuts_snapshot_id,
        )
        ctx.progress(f"the lake had moved to cut {lsn} already: recorded")


def about_to_publish(ctx: Context, *, within: float) -> bool:
    """Tell whether a merge has ended its Spark run in the last seconds and has not published yet."""
    attempt = prepared(ctx)
    written = ctx.landing.written_at(result_path(ctx, attempt)) if attempt else None
    return written is not None and datetime.now(UTC) - written < timedelta(seconds=within)


def prepared(ctx: Context) -> str | None:
    """Return the newest attempt if Spark has prepared it and the ledger knows nothing of its publication."""
    attempt, cut = ctx.ledger.pipelines.get(ctx.name).merge_attempt, ctx.ledger.merges.last_cut(ctx.name)
    if attempt is None or (cut and cut.attempt == attempt):
        return None
    there = all(ctx.landing.exists(path(ctx, attempt)) for path in (plan_path, result_path))
    return attempt if there else None


def cuts_snapshot(ctx: Context) -> int | None:
    """Return the snapshot of `_penstock_cuts` that the last cut was recorded with, None before the first."""
    return _cuts_snapshot(ctx, ctx.ledger.merges.last_cut(ctx.name))


def _cuts_snapshot(ctx: Context, cut: CutRecord | None) -> int | None:
    if cut is None or cut.cuts_snapshot_id is not None:
        return cut.cuts_snapshot_id if cut else None
    return read_result(ctx, cut.attempt).cuts_snapshot_id  # a cut of before the ledger had it


def _open(ctx: Context, *, last: bool) -> bool:
    """Tell whether the pipeline can be merged now; raises LedgerError("pipeline-halted" | "not-bootstrapped")."""
    record = ctx.ledger.pipelines.get(ctx.name)
    if record.state == "bootstrapping":
        return False
    if last:
        return record.halted_from == "running"
    running(ctx)
    return True


def _pointers(result: MergeResult) -> list[Pointer]:
    pointers = (*(table.pointer for table in result.tables), result.cuts)
    return [pointer for pointer in pointers if pointer]


def _rows(result: MergeResult) -> int:
    return sum(table.counts.get("rows_written", 0) for table in result.tables)


def read_result(ctx: Context, attempt: str) -> MergeResult:
    """Return what Spark answered to an attempt; raises LakeError("spark-failed") where it gave no answer."""
    path = result_path(ctx, attempt)
    if not ctx.landing.exists(path):
        raise LakeError("spark-failed", f"expected Spark's result of attempt {attempt} in the landing zone, found none")
    result = MergeResult.loads(ctx.landing.read_text(path))
    if (result.pipeline, result.attempt) != (ctx.name, attempt):
        raise LakeError("spark-failed", f"expected the result of {ctx.name} {attempt}, got that of {result.attempt}")
    return result


def _loaded(ctx: Context, orders: MergePlan) -> dict[int, str]:
    """Name, per table, the copy that these orders load."""
    loading = {table.oid for table in orders.tables if table.copy_files is not None}
    return {
        table.oid: table.copy_id
        for table in ctx.ledger.tables.all(ctx.name)
        if table.oid in loading and table.copy_id is not None
    }


def _queue(ctx: Context) -> MergeQueue:
    """Read what is due; a table copied under a later snapshot waits until capture has come as far as that.

    A table that has been made anew stands for the one whose place it takes.
    """
    queue = ctx.ledger.windows.to_merge(ctx.name)
    early = {oid for oid, copied in queue.copies.items() if copied.lsn > queue.upto}
    reached = [each for each in queue.rebuilds if max(each.through_lsn or 0, each.copy_lsn or 0) <= queue.upto]
    waiting = rebuild_plan.waiting_for_names(reached, queue.targets)
    for each, holder in waiting.values():
        _note_waiting(ctx, each, holder)
    rebuilds = tuple(each for each in reached if each.id not in waiting)
    rebuilt = {each.oid for each in rebuilds}
    tables = tuple(
        table
        for table in queue.tables
        if table.oid not in rebuilt and (table.state != "copied" or table.oid not in early)
    )
    return replace(queue, tables=tables, rebuilds=rebuilds)


def _note_waiting(ctx: Context, rebuild: RebuildRecord, holder: int) -> None:
    """Note once which table has the name that another one waits for."""
    names = {each.oid: each.qualified for each in ctx.ledger.tables.all(ctx.name)}
    message = (
        f"{names[rebuild.oid]} was renamed to {rebuild.qualified}, and its new table waits for that name: "
        f"the lake's {rebuild.qualified} is still another table, which has to make way; resync {names[holder]} too"
    )
    if ctx.ledger.events.add_on_change(
        ctx.name, slug="schema-change", level="warning", message=message, table_oid=rebuild.oid
    ):
        ctx.progress(message)


def _with_switches(ctx: Context) -> tuple[MergeQueue, list[TablePlan]]:
    """Return what is due, with orders for the tables that were made anew: their last windows, and their names.

    A rebuild whose last windows do not fit is given up, and its table is due as before.
    """
    queue, orders = _queue(ctx), []
    known = rebuild_plan.shapes(ctx) if queue.rebuilds else {}
    for each in queue.rebuilds:
        try:
            last = rebuild_plan.due(queue.windows, each.through_lsn)
            orders.append(rebuild_plan.rebuild_plan(ctx, each, last, known))
        except LakeError as error:
            if error.slug != "schema-change":
                raise
            ctx.ledger.rebuilds.give_up(ctx.name, each, slug="rebuild-given-up", reason=error.message)
            ctx.progress(f"gave up the {each.kind} of {each.qualified}: {error.message}")
            return _with_switches(ctx)
    return queue, orders


def _require_rebuilt(ctx: Context, orders: MergePlan, result: MergeResult) -> None:
    """Give up the rebuilds that could not take their last windows; their tables are not in this cut, so it cannot be.

    Raises LakeError("publish-conflict"): the next merge goes on with the tables as they were.
    """
    by_id = {each.id: each for each in ctx.ledger.rebuilds.all(ctx.name)}
    rebuilt = {table.oid: by_id.get(table.rebuild) for table in orders.tables if table.rebuild is not None}
    failed = [table for table in result.tables if table.paused_slug and table.oid in rebuilt]
    for table in failed:
        found = rebuilt[table.oid]
        if found is not None:
            reason = f"[{table.paused_slug}] {table.paused_reason}"
            ctx.ledger.rebuilds.give_up(ctx.name, found, slug="rebuild-given-up", reason=reason)
    if failed:
        names = ", ".join(".".join(table.target) for table in failed)
        raise LakeError(
            "publish-conflict",
            f"expected the rebuilt tables to take their last changes, but {names} could not, and were given up; nothing "
            "was published, and the tables are as they were: merge again",
        )


def _evolved(queue: MergeQueue) -> frozenset[int]:
    """Name the tables that have columns which the last cut of them did not know."""
    return frozenset(
        table.oid
        for table in queue.tables
        if table.state == "ready" and (table.lake_columns is None or len(table.columns) > table.lake_columns)
    )


def _stale(ctx: Context, queue: MergeQueue) -> bool:
    oldest = datetime.now(UTC) - timedelta(seconds=ctx.pipeline.merge.idle_cut)
    return queue.last_cut is not None and queue.last_cut.published_at < oldest


def _changes(queue: MergeQueue) -> int:
    entries = (entry for table in queue.tables for entry in queue.files(table))
    return sum(entry.rows for entry in (*entries, *_rebuild_files(queue)))


def _rebuild_files(queue: MergeQueue) -> Iterator[FileEntry]:
    for each in queue.rebuilds:
        for window in rebuild_plan.due(queue.windows, each.through_lsn):
            yield from (entry for entry in window.files if entry.oid == each.oid)


def _loads(queue: MergeQueue) -> int:
    return sum(table.state == "copied" for table in queue.tables)


def _pause_reshaped(ctx: Context, queue: MergeQueue) -> MergeQueue:
    """Pause the tables whose landed files have another shape than the lake's table can take; return the rest."""
    shapes = {
        (record.relation.oid, record.version): record.relation for record in ctx.ledger.windows.relations(ctx.name)
    }
    kept: list[TableRecord] = []
    for table in queue.tables:
        relations = {(entry.oid, entry.version): shapes[entry.oid, entry.version] for entry in queue.files(table)}
        reason = next(filter(None, (schema_drift.reshaped(table, relation) for relation in relations.values())), None)
        if reason is None:
            kept.append(table)
        else:
            ctx.ledger.tables.pause(ctx.name, table.oid, slug="schema-change", reason=reason)
            ctx.progress(f"paused {table.schema}.{table.name}: {reason}")
    return replace(queue, tables=tuple(kept))


def _published(orders: MergePlan, result: MergeResult, copies: Mapping[int, str]) -> list[PublishedTable]:
    """Name every table that is complete through the cut: the moved ones, and those that had nothing to do."""
    done = {table.oid: table for table in result.tables if table.paused_slug is None}
    return [
        PublishedTable(
            table.oid,
            done[table.oid].snapshot_id,
            copies.get(table.oid),
            table.rebuild,
            shows=_shows(done[table.oid]),
            columns=len(table.columns),
            **{name: done[table.oid].counts.get(name, 0) for name in MET},
        )
        for table in orders.tables
        if table.oid in done
    ]


def _shows(table: TableResult) -> str | None:
    return table.pointer.new if table.pointer else table.shows


def _still(orders: MergePlan, result: MergeResult) -> dict[Place, str | None]:
    """Return what the catalog must show of the tables that do not move: what Spark saw, or what the plan did."""
    idle = {table.oid: table.shows for table in result.tables if not table.pointer and not table.paused_slug}
    return {place_of(table.target): idle[table.oid] or table.shown for table in orders.tables if table.oid in idle}


def plan_path(ctx: Context, attempt: str) -> str:
    """Name the file of an attempt's orders in the landing zone."""
    return f"{layout.run_folder(ctx.name, attempt)}/plan.json"


def result_path(ctx: Context, attempt: str) -> str:
    """Name the file of Spark's answer to an attempt."""
    return f"{layout.run_folder(ctx.name, attempt)}/result.json"
