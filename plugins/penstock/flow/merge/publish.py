"""Publish what Spark prepared as one cut: every table moves, or none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from penstock.conditions import with_runbook
from penstock.errors import LakeError, Trouble
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.flow.health import alarms
from penstock.flow.health.alerts import Deliver
from penstock.flow.merge.attempt import prepared, read_result
from penstock.jobs.merge_plan import CONFLICTS, MET, MergePlan, MergeResult, TableResult
from penstock.jobs.pointers import Place, Pointer, Rename, place_of, possible
from penstock.lake.columns import columns_stamp
from penstock.landing import layout
from penstock.ledger import iceberg_pointers
from penstock.ledger.merge_queue import PublishedTable, TableCut
from penstock.ledger.merges import NewCut
from penstock.ledger.records import CutRecord
from penstock.lsn import Lsn
from penstock.units import several


def publish(ctx: Context, attempt: str, *, last: bool = False, deliver: Deliver | None = None) -> CutRecord:
    """Move all tables of an attempt, the cuts table and the ledger in one step; repeating it changes nothing.

    A table of which changes met other rows than they should is an alarm, which slot health sends where `deliver` does not.
    """
    with ctx.ledger.session():
        return _publish(ctx, attempt, last=last, deliver=deliver)


def _publish(ctx: Context, attempt: str, *, last: bool, deliver: Deliver | None) -> CutRecord:
    orders = MergePlan.loads(ctx.landing.read_text(layout.plan_file(ctx.name, attempt)))
    result = read_result(ctx, attempt)
    _require_rebuilt(ctx, orders, result)
    stopped = _troubles(result)
    cut = ctx.ledger.merges.publish(
        ctx.name,
        replace(_new_cut(ctx, orders, result, _renames(ctx, orders, result)), stopped=stopped),
        catalog=ctx.catalog,
        catalog_name=orders.catalog,
        pointers=_pointers(result),
        still=_still(orders, result),
        halted=last,
    )
    _watch_conflicts(ctx, orders, result, deliver)
    if result.cuts_anew is not None:
        _tell_cuts_anew(ctx, result.cuts_anew, cut)
    names = {table.oid: f"{table.schema}.{table.table}" for table in orders.tables}
    for oid, met in stopped.items():
        ctx.progress(with_runbook(f"paused {names[oid]}: [{met.slug}] {met.reason}", met.slug))
    ctx.progress(
        f"published cut {cut.lsn}: {several(sum(t.pointer is not None for t in result.tables), 'table')} moved"
    )
    return cut


def adopt_half_published(ctx: Context) -> None:
    """Record the cut of a publisher that died after the catalog's commit and before the ledger's, in two databases."""
    attempt = prepared(ctx)
    if attempt is None:
        return
    orders, result = (
        MergePlan.loads(ctx.landing.read_text(layout.plan_file(ctx.name, attempt))),
        read_result(ctx, attempt),
    )
    renames = possible(orders.renames, _paused(result))
    if iceberg_pointers.moved(ctx.catalog, orders.catalog, _pointers(result), renames):
        new = _new_cut(ctx, orders, result, renames)
        ctx.ledger.merges.adopt_published(ctx.name, new)
        ctx.progress(f"the lake had moved to cut {new.lsn} already: recorded")


def _new_cut(ctx: Context, orders: MergePlan, result: MergeResult, renames: Sequence[Rename]) -> NewCut:
    return NewCut(
        orders.attempt,
        Lsn(result.upto_lsn),
        _published(orders, result, _loaded(ctx, orders)),
        cuts_snapshot_id=_recorded(result),
        rows=_rows(result),
        renames=renames,
    )


def cuts_snapshot(ctx: Context) -> int | None:
    """Return the snapshot of `_penstock_cuts` that the last cut was recorded with, None before the first."""
    cut = ctx.ledger.merges.last_cut(ctx.name)
    return cut.cuts_snapshot_id if cut else None


def _recorded(result: MergeResult) -> int:
    """Return the snapshot of `_penstock_cuts` that holds a run's cut."""
    if result.cuts_snapshot_id is None:
        raise ValueError(
            f"expected attempt {result.attempt} to record a cut, it only fills fresh tables; this is a bug"
        )
    return result.cuts_snapshot_id


def _tell_cuts_anew(ctx: Context, reason: str, cut: CutRecord) -> None:
    message = f"the table of cuts was begun anew with cut {cut.lsn}, for: {reason}"
    ctx.ledger.events.add(ctx.name, slug="cuts-unreadable", level="warning", message=message)
    ctx.progress(message)


def _watch_conflicts(ctx: Context, orders: MergePlan, result: MergeResult, deliver: Deliver | None) -> None:
    """Open and close alarms where this cut has met conflicts, or has brought tables that were copied."""
    met = {table.oid for table in result.tables if any(table.counts.get(name) for name in CONFLICTS)}
    copied = {table.oid for table in orders.tables if table.fresh or table.copy_files is not None}
    if met or copied:
        alarms.compared(ctx, met | copied, deliver)


def _require_rebuilt(ctx: Context, orders: MergePlan, result: MergeResult) -> None:
    """Give up the rebuilds that could not take their last windows; their tables are not in this cut, so it cannot be.

    Raises LakeError("publish-conflict"): the next merge continues with the tables as they were.
    """
    by_id = {each.id: each for each in ctx.ledger.loads.builds(ctx.name)}
    rebuilt = {table.oid: by_id.get(table.rebuild) for table in orders.tables if table.rebuild is not None}
    failed = [table for table in result.tables if table.paused_slug and table.oid in rebuilt]
    for table in failed:
        found = rebuilt[table.oid]
        if found is not None:
            reason = f"[{table.paused_slug}] {table.paused_reason}"
            table_status.give_up(ctx, found, reason)
    if failed:
        names = ", ".join(".".join(table.target) for table in failed)
        raise LakeError(
            "publish-conflict",
            f"expected the rebuilt tables to take their last changes, but {names} could not, and were given up; nothing "
            "was published, and the tables are as they were: merge again",
        )


def _renames(ctx: Context, orders: MergePlan, result: MergeResult) -> tuple[Rename, ...]:
    """Return the renames of the tables that are in the cut.

    Raises LakeError("publish-conflict") where a rebuilt table was to have a name that is not left for that reason: the
    next merge is planned without the tables that are paused now.
    """
    renames = possible(orders.renames, _paused(result))
    left = {each.target for each in renames}
    if any(order.vacated and order.target not in left for order in orders.tables):
        known = {table.oid: table for table in ctx.ledger.tables.all(ctx.name)}
        for oid, met in _troubles(result).items():
            table_status.stop(ctx, known[oid], met)
        raise LakeError(
            "publish-conflict",
            "expected renamed tables to leave their names to others in this cut, but some were paused; nothing was published: "
            "merge again",
        )
    return renames


def _troubles(result: MergeResult) -> dict[int, Trouble]:
    """Return what Spark met in the tables that stay behind, by oid."""
    return {t.oid: Trouble.usual(t.paused_slug, t.paused_reason or "") for t in result.tables if t.paused_slug}


def _paused(result: MergeResult) -> list[int]:
    return [table.oid for table in result.tables if table.paused_slug is not None]


def _loaded(ctx: Context, orders: MergePlan) -> dict[int, str]:
    """Name, per table, the copy that these orders load."""
    loading = {table.oid for table in orders.tables if table.copy_files is not None}
    if not loading:
        return {}
    return {
        table.oid: table.copy_id
        for table in ctx.ledger.tables.all(ctx.name)
        if table.oid in loading and table.copy_id is not None
    }


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
            columns=None if table.idle else columns_stamp(table.columns),
            **{name: done[table.oid].counts.get(name, 0) for name in MET},
            done=_done(done[table.oid]),
        )
        for table in orders.tables
        if table.oid in done
    ]


def _pointers(result: MergeResult) -> list[Pointer]:
    pointers = (*(table.pointer for table in result.tables), result.cuts)
    return [pointer for pointer in pointers if pointer]


def _rows(result: MergeResult) -> int:
    return sum(table.counts.get("rows_written", 0) for table in result.tables)


def _done(table: TableResult) -> TableCut | None:
    if table.size is None:
        return None
    names = ("inserts", "updates", "deletes", "truncates", "rows_deleted", "rows_written")
    return TableCut(**{name: table.counts.get(name, 0) for name in names}, seconds=table.seconds, **asdict(table.size))


def _shows(table: TableResult) -> str | None:
    return table.pointer.new if table.pointer else table.shows


def _still(orders: MergePlan, result: MergeResult) -> dict[Place, str | None]:
    """Return what the catalog must show of the tables that do not move: what Spark saw, or what the plan did."""
    idle = {table.oid: table.shows for table in result.tables if not table.pointer and not table.paused_slug}
    return {place_of(table.target): idle[table.oid] or table.shown for table in orders.tables if table.oid in idle}
