"""Build fresh tables from copies and landed windows, chunk by chunk, next to the tables that readers see.

Every chunk is a Spark run of its own: planned, written down, submitted, settled. To settle is to move the fresh table's
pointer and the ledger's row together, so a run that is killed anywhere loses at most its chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from penstock.errors import LakeError
from penstock.flow import landing_mark, table_status
from penstock.flow.context import Context
from penstock.flow.merge import rebuild_plan
from penstock.flow.merge.attempt import read_result
from penstock.flow.merge.run import job
from penstock.flow.spark_job import Submit, carried_out
from penstock.jobs.merge_plan import MET, MergePlan, MergeResult, TablePlan, TableResult
from penstock.landing import layout
from penstock.ledger import new_attempt
from penstock.ledger.loads import BuildStep
from penstock.ledger.records import WindowRecord
from penstock.ledger.table_records import LoadRecord, LoadState
from penstock.lsn import Lsn
from penstock.units import several


def build(ctx: Context, ids: Sequence[str], submit: Submit) -> None:
    """Bring these rebuilds as far as the pipeline is now, or to their goals.

    Raises LakeError("rebuild-given-up") for tables that cannot be built, when the others are.
    """
    lost: list[str] = []
    with _collecting(lost):
        _settle_dead_runs(ctx, ids)
    while rebuilds := _building(ctx, ids):
        with _collecting(lost):
            _advance(ctx, rebuilds, submit)
    if lost:
        raise LakeError("rebuild-given-up", "; ".join(lost))


@contextmanager
def _collecting(lost: list[str]) -> Iterator[None]:
    """Keep the message of a rebuild that was given up inside: it is over, and no other waits for it."""
    try:
        yield
    except LakeError as error:
        if error.slug != "rebuild-given-up":
            raise
        lost.append(error.message)


def _advance(ctx: Context, rebuilds: Sequence[LoadRecord], submit: Submit) -> None:
    """Build the next chunk of each."""
    run = _plan(ctx, rebuilds)
    if any(table.files or table.copy_files is not None for table in _orders(ctx, run).tables):
        carried_out(ctx, submit, job(ctx, run))
    else:
        _write_unmoved(ctx, run)
    _settle(ctx, run)


def _settle_dead_runs(ctx: Context, ids: Sequence[str]) -> None:
    """Take over what Spark had prepared for a process that died, unless the fresh table has changed since."""
    for run in sorted({each.run for each in _building(ctx, ids) if each.run is not None}):
        try:
            _settle(ctx, run)
        except LakeError as error:
            if error.slug != "publish-conflict":
                raise
            ctx.progress(f"run {run} of a dead process is of no use: its chunk is built again")


def _building(ctx: Context, ids: Sequence[str]) -> list[LoadRecord]:
    return [each for each in ctx.ledger.loads.builds(ctx.name, states=["building"]) if each.id in ids]


def _plan(ctx: Context, rebuilds: Sequence[LoadRecord]) -> str:
    """Write the orders of the next chunk of each rebuild; from here only this run may advance them."""
    landing_mark.require(ctx)
    run, settings = new_attempt(), ctx.pipeline
    position = ctx.ledger.pipelines.get(ctx.name).position or Lsn(0)
    first = min(each.after or position for each in rebuilds)
    windows = [window for window in ctx.ledger.windows.all(ctx.name, after=first) if window.upto_lsn <= position]
    known = rebuild_plan.landed_relations(ctx)
    tables = []
    for each in rebuilds:
        end = position if each.goal_lsn is None else each.goal_lsn
        copied = each.through_lsn is None
        due = rebuild_plan.due(windows, each.after, each.goal_lsn)
        chosen = rebuild_plan.chunk(due, each.oid, most_bytes=settings.merge.rebuild_bytes)
        through = end if len(chosen) == len(due) else chosen[-1].upto_lsn
        ctx.progress(
            f"{each.qualified}: {'the copy and ' if copied else ''}{len(chosen)} of {several(len(due), 'window')} next, "
            f"through {through}; {several(each.built_rows, 'row')} so far"
        )
        ctx.stage(*_share(each, each.through_lsn, end))
        tables.append(_next(ctx, each, chosen, known, copied=copied, through=through))
    orders = MergePlan(
        pipeline=ctx.name,
        attempt=run,
        catalog=settings.lake.catalog,
        namespace=settings.namespace,
        from_lsn=first,
        upto_lsn=position,
        tables=tuple(tables),
        skip_commit_lsns=tuple(Lsn.parse(text) for text in settings.merge.skip_transactions),
        on_conflict=settings.merge.on_conflict,
        on_misfit=settings.merge.on_misfit,
        parallel_tables=settings.spark.parallel_tables,
        table_properties=dict(settings.lake.properties),
        era=ctx.ledger.pipelines.get(ctx.name).era,
        cut=False,
        landing_uri=settings.landing.uri,
        landing_options=dict(settings.landing.options),
        task_memory=settings.spark.task_memory,
    )
    ctx.landing.write_text(layout.plan_file(ctx.name, run), orders.dumps())
    ctx.ledger.loads.run(ctx.name, ids=[each.id for each in rebuilds], run=run)
    return run


def _share(rebuild: LoadRecord, through: Lsn | None, end: Lsn) -> tuple[str, int, int]:
    """Say which part of the WAL since its copy a table holds; its copy is a part, too."""
    done = 0 if through is None else int(through) - int(rebuild.lsn) + 1
    return f"building {rebuild.qualified}", done, int(end) - int(rebuild.lsn) + 1


def _next(
    ctx: Context,
    rebuild: LoadRecord,
    windows: Sequence[WindowRecord],
    known: rebuild_plan.Landed,
    *,
    copied: bool,
    through: Lsn,
) -> TablePlan:
    try:
        return rebuild_plan.rebuild_plan(ctx, rebuild, windows, known, copied=copied, through=through)
    except LakeError as error:
        if error.slug == "schema-change":
            table_status.give_up(ctx, rebuild, error.message)
            raise LakeError("rebuild-given-up", error.message) from None
        if error.slug != "landing-file-missing":
            raise
        # what is merged already is missed by this rebuild alone: no reason to halt the pipeline
        raise LakeError("range-unavailable", f"{error.message}: resync {rebuild.qualified}") from None


def _orders(ctx: Context, run: str) -> MergePlan:
    return MergePlan.loads(ctx.landing.read_text(layout.plan_file(ctx.name, run)))


def _write_unmoved(ctx: Context, run: str) -> None:
    """Write the result of a run that has no change to bring: Spark is not needed for that."""
    orders = _orders(ctx, run)
    tables = tuple(
        TableResult(table.oid, table.target, None, table.expected_snapshot, {}, 0) for table in orders.tables
    )
    result = MergeResult(ctx.name, run, orders.upto_lsn, tables, None, None, 0)
    ctx.landing.write_text(layout.result_file(ctx.name, run), result.dumps())


def _settle(ctx: Context, run: str) -> None:
    """Move what a run has prepared and note how far it is; a run without a result has brought nothing."""
    if not ctx.landing.exists(layout.result_file(ctx.name, run)):
        return
    orders, result = _orders(ctx, run), read_result(ctx, run)
    ours = {each.id for each in ctx.ledger.loads.builds(ctx.name, states=["building"]) if each.run == run}
    pairs = zip(orders.tables, result.tables, strict=True)
    done = [(order, table) for order, table in pairs if order.rebuild in ours and not table.paused_slug]
    ctx.ledger.loads.advance(
        ctx.name,
        run=run,
        catalog=ctx.catalog,
        catalog_name=orders.catalog,
        pointers=[table.pointer for _, table in done if table.pointer],
        steps=[_step(ctx, orders, order, table) for order, table in done],
    )
    for order, _ in done:
        ctx.progress(f"{order.schema}.{order.table}: built through {Lsn(order.through or 0)}")
    for each in ctx.ledger.loads.builds(ctx.name, states=["ready", "done"]):
        if each.id in ours:
            ctx.stage(*_share(each, each.through_lsn, each.through_lsn or Lsn(0)))
    _give_up(ctx, orders, result)


def _step(ctx: Context, orders: MergePlan, order: TablePlan, table: TableResult) -> BuildStep:
    through = Lsn(order.through or 0)
    rows = sum(file.rows for file in (*order.files, *(order.copy_files or ())))
    goal = {each.id: each.goal_lsn for each in ctx.ledger.loads.builds(ctx.name)}[order.rebuild or ""]
    at_end = through >= (orders.upto_lsn if goal is None else goal)
    state: LoadState = "building" if not at_end else "ready" if goal is None else "done"
    met = {name: table.counts.get(name, 0) for name in MET}
    return BuildStep(order.rebuild or "", through, table.snapshot_id or 0, rows, state, **met)


def _give_up(ctx: Context, orders: MergePlan, result: MergeResult) -> None:
    rebuilds = {
        each.oid: each for each in ctx.ledger.loads.builds(ctx.name, states=["building"]) if each.run == orders.attempt
    }
    failed = [table for table in result.tables if table.paused_slug and table.oid in rebuilds]
    for table in failed:
        reason = f"[{table.paused_slug}] {table.paused_reason}"
        table_status.give_up(ctx, rebuilds[table.oid], reason)
    if failed:
        reasons = "; ".join(
            f"{'.'.join(table.target)}: [{table.paused_slug}] {table.paused_reason}" for table in failed
        )
        raise LakeError("rebuild-given-up", f"expected every table to be rebuilt, but not so: {reasons}")
