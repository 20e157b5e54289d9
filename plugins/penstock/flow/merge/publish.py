"""Publish what Spark prepared: all tables of a cut in one step, or the chunks of what is built next to them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from penstock.errors import LakeError
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.flow.health import alarms
from penstock.flow.health.alerts import Deliver
from penstock.flow.merge.attempts import Attempt, built_share, prepared, read_attempt
from penstock.jobs.plans import CONFLICTS, MET, TablePlan, TableResult
from penstock.jobs.pointers import Place, Rename, place_of, possible
from penstock.lake.columns import columns_stamp
from penstock.landing import layout
from penstock.ledger import iceberg_pointers
from penstock.ledger.loads import BuildStep
from penstock.ledger.merge_queue import PublishedTable
from penstock.ledger.merges import NewCut
from penstock.ledger.records import CutRecord
from penstock.ledger.table_records import LoadRecord, LoadState
from penstock.lsn import Lsn
from penstock.units import several


def publish(ctx: Context, attempt: str, *, last: bool = False, deliver: Deliver | None = None) -> CutRecord:
    """Move all tables of an attempt, the cuts table and the ledger in one step; repeating it changes nothing.

    A table of which changes met other rows than they should is an alarm, which slot health sends where `deliver` does not.
    """
    with ctx.ledger.session():
        return _publish(ctx, read_attempt(ctx, attempt), last=last, deliver=deliver)


def _publish(ctx: Context, done: Attempt, *, last: bool, deliver: Deliver | None) -> CutRecord:
    orders, result, stopped = done.orders, done.result, done.troubles
    _require_rebuilt(ctx, done)
    new, still = _new_cut(done, _renames(ctx, done)), _still(done)
    with ctx.ledger.together(ctx.name):
        if stopped and not ctx.ledger.merges.published(ctx.name, new.attempt):
            table_status.stop_all(ctx, ctx.ledger.tables.all(ctx.name), stopped)
        cut = ctx.ledger.merges.publish(
            ctx.name,
            new,
            catalog=ctx.catalog,
            catalog_name=orders.catalog,
            pointers=done.pointers,
            still=still,
            halted=last,
        )
    _watch_conflicts(ctx, done, deliver)
    if result.cuts_anew is not None:
        anew = f"the table of cuts was begun anew with cut {cut.lsn}, for: {result.cuts_anew}"
        ctx.ledger.events.add(ctx.name, slug="cuts-unreadable", level="warning", message=anew)
        ctx.progress(anew)
    ctx.progress(
        f"published cut {cut.lsn}: {several(sum(t.pointer is not None for t in result.tables), 'table')} moved"
    )
    return cut


def publish_chunks(ctx: Context, attempt: str) -> list[str]:
    """Move the fresh tables of an attempt and note how far they are; one without a result has brought nothing.

    Those that could not be built are given up, when the others have moved; return why.
    """
    if not ctx.landing.exists(layout.result_file(ctx.name, attempt)):
        return []
    done, building = read_attempt(ctx, attempt), ctx.ledger.loads.builds(ctx.name, states=["building"])
    ours = {each.id: each for each in building if each.run == attempt}
    pairs = zip(done.orders.tables, done.result.tables, strict=True)
    moving = [(order, table) for order, table in pairs if order.rebuild in ours and not table.paused_slug]
    ctx.ledger.loads.advance(
        ctx.name,
        run=attempt,
        catalog=ctx.catalog,
        catalog_name=done.orders.catalog,
        pointers=[table.pointer for _, table in moving if table.pointer],
        steps=[_step(ours[order.rebuild or ""], done, order, table) for order, table in moving],
    )
    for order, _ in moving:
        ctx.progress(f"{order.schema}.{order.table}: built through {Lsn(order.through or 0)}")
    for each in ctx.ledger.loads.builds(ctx.name, states=["ready", "done"]):
        if each.id in ours:
            ctx.stage(*built_share(each, each.through_lsn, each.through_lsn or Lsn(0)))
    failed = _give_up(ctx, done, ours)
    return [f"expected {'.'.join(t.target)} to be rebuilt, but [{t.paused_slug}] {t.paused_reason}" for t in failed]


def _step(load: LoadRecord, done: Attempt, order: TablePlan, table: TableResult) -> BuildStep:
    through, goal = Lsn(order.through or 0), load.goal_lsn
    rows = sum(file.rows for file in (*order.files, *(order.copy_files or ())))
    at_end = through >= (done.orders.upto_lsn if goal is None else goal)
    state: LoadState = "building" if not at_end else "ready" if goal is None else "done"
    return BuildStep(load.id, through, table.snapshot_id or 0, rows, state, **_met(table))


def adopt_half_published(ctx: Context) -> None:
    """Record the cut of a publisher that died after the catalog's commit and before the ledger's, in two databases."""
    attempt = prepared(ctx)
    if attempt is None:
        return
    done = read_attempt(ctx, attempt)
    renames = possible(done.orders.renames, done.troubles)
    if iceberg_pointers.moved(ctx.catalog, done.orders.catalog, done.pointers, renames):
        new = _new_cut(done, renames)
        ctx.ledger.merges.adopt_published(ctx.name, new)
        ctx.progress(f"the lake had moved to cut {new.lsn} already: recorded")


def _new_cut(done: Attempt, renames: Sequence[Rename]) -> NewCut:
    assert done.result.cuts_snapshot_id is not None, "an attempt at a cut records it"  # noqa: S101
    return NewCut(
        done.orders.attempt,
        Lsn(done.result.upto_lsn),
        _published(done),
        cuts_snapshot_id=done.result.cuts_snapshot_id,
        rows=sum(table.counts.get("rows_written", 0) for table in done.result.tables),
        renames=renames,
    )


def cuts_snapshot(ctx: Context) -> int | None:
    """Return the snapshot of `_penstock_cuts` that the last cut was recorded with, None before the first."""
    cut = ctx.ledger.merges.last_cut(ctx.name)
    return cut.cuts_snapshot_id if cut else None


def _watch_conflicts(ctx: Context, done: Attempt, deliver: Deliver | None) -> None:
    """Open and close alarms where this cut has met conflicts, or has brought tables that were copied."""
    met = {table.oid for table in done.result.tables if any(table.counts.get(name) for name in CONFLICTS)}
    copied = {table.oid for table in done.orders.tables if table.fresh}
    if met or copied:
        alarms.compared(ctx, met | copied, deliver)


def _require_rebuilt(ctx: Context, done: Attempt) -> None:
    """Give up the rebuilds that could not take their last windows; their tables are not in this cut, so it cannot be.

    Raises LakeError("publish-conflict"): the next merge continues with the tables as they were.
    """
    if failed := _give_up(ctx, done, {each.id: each for each in ctx.ledger.loads.builds(ctx.name)}):
        names = ", ".join(".".join(table.target) for table in failed)
        raise LakeError(
            "publish-conflict",
            f"expected the rebuilt tables to take their last changes, but {names} could not, and were given up; nothing "
            "was published, and the tables are as they were: merge again",
        )


def _give_up(ctx: Context, done: Attempt, open_: Mapping[str, LoadRecord]) -> list[TableResult]:
    """Give up what could not be built of these loads; return what Spark answered of it.

    A table that has nothing but its first copy, which the cut itself loads, is paused like others.
    """
    first = {table.oid for table in done.orders.tables if done.orders.cut and table.copy_files is not None}
    built = {table.oid: table.rebuild for table in done.orders.tables if table.rebuild and table.oid not in first}
    failed = [table for table in done.result.tables if table.paused_slug and table.oid in built]
    for table in failed:
        if (found := open_.get(built[table.oid])) is not None:
            table_status.give_up(ctx, found, f"[{table.paused_slug}] {table.paused_reason}")
    return failed


def _renames(ctx: Context, done: Attempt) -> tuple[Rename, ...]:
    """Return the renames of the tables that are in the cut.

    Raises LakeError("publish-conflict") where a rebuilt table was to have a name that is not left for that reason: the
    next merge is planned without the tables that are paused now.
    """
    renames = possible(done.orders.renames, done.troubles)
    left = {each.target for each in renames}
    if any(order.vacated and order.target not in left for order in done.orders.tables):
        table_status.stop_all(ctx, ctx.ledger.tables.all(ctx.name), done.troubles)
        raise LakeError(
            "publish-conflict",
            "expected renamed tables to leave their names to others in this cut, but some were paused; nothing was published: "
            "merge again",
        )
    return renames


def _published(done: Attempt) -> list[PublishedTable]:
    """Name every table that is complete through the cut: the moved ones, and those that had nothing to do."""
    there = {table.oid: table for table in done.result.tables if table.paused_slug is None}
    return [
        PublishedTable(
            table.oid,
            found.snapshot_id,
            table.rebuild,
            table.target,
            shows=found.pointer.new if found.pointer else found.shows,
            columns=None if table.idle else columns_stamp(table.columns),
            **_met(found),
            done=_moved(found),
        )
        for table in done.orders.tables
        if (found := there.get(table.oid))
    ]


def _met(table: TableResult) -> dict[str, int]:
    return {name: table.counts.get(name, 0) for name in MET}


def _moved(table: TableResult) -> dict[str, float] | None:
    """Return what the cut did to a table that moved: changes it took, rows that went and came, seconds, and its size since then."""
    if table.size is None:
        return None
    names = ("inserts", "updates", "deletes", "truncates", "rows_deleted", "rows_written")
    return {**{name: table.counts.get(name, 0) for name in names}, "seconds": table.seconds, **asdict(table.size)}


def _still(done: Attempt) -> dict[Place, str | None]:
    """Return what the catalog must show of the tables that do not move: what Spark saw, or what the plan did."""
    idle = {table.oid: table.shows for table in done.result.tables if not table.pointer and not table.paused_slug}
    return {place_of(table.target): idle[table.oid] or table.shown for table in done.orders.tables if table.oid in idle}
