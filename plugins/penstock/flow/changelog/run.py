"""Changelog: fill an interval of commit time in every table's append-only history, from the landing zone alone.

An interval is filled when capture has passed its end, and replaced as a whole each time: killed anywhere, started
twice or out of order, it ends the same. Spark prepares, the pointers move in one step. A landing file names its relation by oid and
version. In the present era the oid is the table's; of an era before, perhaps of another server, the name decides.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from penstock.contract.manifest import FileEntry
from penstock.contract.schema import NO_COLUMNS_FIELD
from penstock.errors import LakeError, LedgerError
from penstock.flow import landing_mark
from penstock.flow.changelog import coverage, late_changes
from penstock.flow.changelog.coverage import Interval, may_hold
from penstock.flow.context import Context
from penstock.flow.spark_job import SparkJob, Submit, answer, carried_out, catalog_secrets, describe, plan_frame
from penstock.jobs.plans import ChangelogPlan, ChangelogResult, ChangelogTable
from penstock.lake.changelog import MissingTransaction
from penstock.lake.columns import LakeColumn, lake_column
from penstock.landing import layout
from penstock.ledger import new_attempt
from penstock.ledger.changelogs import FillRecord, IntervalWork
from penstock.ledger.records import SkippedRecord
from penstock.ledger.table_records import TableRecord
from penstock.shapes.mirror_column import present
from penstock.source.patterns import chosen_by
from penstock.units import several
from penstock.values.lake_types import lake_type_of
from penstock.values.pgtype import builtin
from penstock.values.type_change import is_real
from penstock.wire.messages import Relation

WORK = "changelog"


def fill(ctx: Context, interval: Interval, submit: Submit, *, wait: float = 0) -> FillRecord:
    """Replace the interval in every changelog; one fill of a pipeline at a time, after waiting at most `wait` seconds.

    Raises LedgerError: "interval-invalid", "interval-gone", "interval-not-captured", "work-under-way"; LakeError.
    """
    with ctx.ledger.locks.hold(ctx.name, WORK, wait=wait):
        attempt = plan(ctx, interval)
        carried_out(ctx, submit, job(ctx, attempt))
        return publish(ctx, attempt)


def waiting(ctx: Context, interval: Interval) -> str | None:
    """Say what an interval still waits for, None when it can be filled.

    Raises LedgerError: "interval-invalid", "interval-gone".
    """
    return coverage.verdict(ctx, ctx.ledger.changelogs.history(ctx.name), interval).waiting


def precedes(ctx: Context, interval: Interval) -> bool:
    """Return whether an interval was over before the pipeline began, so that it need not be filled."""
    known = ctx.ledger.changelogs.history(ctx.name)
    return (
        known.from_the_start
        and known.known_era == 1
        and known.known_from is not None
        and interval.end <= known.known_from
    )


def plan(ctx: Context, interval: Interval) -> str:
    """Write the orders of a new attempt at the interval; return the attempt."""
    coverage.require_valid(interval, datetime.now(UTC))
    landing_mark.require(ctx)
    work = ctx.ledger.changelogs.interval_work(ctx.name, from_time=interval.start, upto_time=interval.end)
    through = coverage.require(ctx, work.history, interval)
    attempt = new_attempt()
    orders = ChangelogPlan(
        from_time=interval.start,
        upto_time=interval.end,
        through_lsn=through,
        tables=_table_orders(ctx, work, interval),
        **plan_frame(ctx, attempt, work.history.era),
    )
    ctx.landing.write_text(layout.plan_file(ctx.name, attempt), orders.dumps())
    files = sum(len(table.files) for table in orders.tables)
    ctx.progress(
        f"{interval}: {several(files, 'landing file')} may hold changes, of {several(len(orders.tables), 'table')}"
    )
    return attempt


def job(ctx: Context, attempt: str) -> SparkJob:
    """Describe the Spark application that carries out an attempt."""
    plan, result = layout.plan_file(ctx.name, attempt), layout.result_file(ctx.name, attempt)
    return describe(ctx, "changelog_tables", plan, catalog_secrets(ctx), result=result)


def publish(ctx: Context, attempt: str) -> FillRecord:
    """Move the changelogs to what Spark prepared, and note the interval; raises LakeError for a table left behind."""
    orders = ChangelogPlan.loads(ctx.landing.read_text(layout.plan_file(ctx.name, attempt)))
    result = answer(ctx.landing, layout.result_file(ctx.name, attempt), ChangelogResult)
    filled = ctx.ledger.changelogs.fill(
        ctx.name,
        orders,
        result.tables,
        catalog=ctx.catalog,
        called=ctx.pipeline.changelog_target,
    )
    ctx.progress(f"{Interval(orders.from_time, orders.upto_time)}: {several(filled.rows, 'change')}")
    late_changes.notice_fill(ctx, filled)
    for table in result.tables:
        if table.paused_slug:
            raise LakeError(table.paused_slug, table.paused_reason or "")
    return filled


@dataclass(frozen=True, slots=True)
class _Landed:
    """Hold one landing file that may have changes of the interval, and the shape of its rows."""

    era: int
    entry: FileEntry
    relation: Relation


def _table_orders(ctx: Context, work: IntervalWork, interval: Interval) -> tuple[ChangelogTable, ...]:
    """Order every table that is to have a changelog, those too that nothing happened to.

    Changes of tables that the ledger no longer knows are left out, with a warning that names them. Raises
    LedgerError("interval-gone") when a landing file is missing.
    """
    wanted = chosen_by(ctx.pipeline.changelog.tables)
    tables = tuple(table for table in work.tables if wanted(table.schema, table.name))
    _report_missing(ctx, work, tables, interval)
    files, strange = _by_table(work, interval)
    left_out = sorted({f"{each.relation.namespace}.{each.relation.name}" for each in strange})
    if left_out:
        message = f"{interval} has changes of tables that the ledger no longer knows, left out: {', '.join(left_out)}"
        ctx.progress(message)
        ctx.ledger.events.add(ctx.name, slug="interval-gone", level="warning", message=message)
    return tuple(_order(ctx, table, files[table.oid], _missing(work, table, interval)) for table in tables)


def _missing(work: IntervalWork, table: TableRecord, interval: Interval) -> tuple[MissingTransaction, ...]:
    """Return the transactions of this table that were left out and may have committed in the interval."""
    return tuple(
        MissingTransaction(each.era, each.lsn, each.xid, max(each.since or interval.start, interval.start))
        for each in work.missing
        if _touched(work, each, table)
    )


def _touched(work: IntervalWork, missing: SkippedRecord, table: TableRecord) -> bool:
    """Return whether a transaction touched the table; an era before may have been another server's, with other oids."""
    if missing.era == work.history.era:
        return table.oid in missing.oids
    names = {record.relation.oid: (record.relation.namespace, record.relation.name) for record in work.relations}
    ours = (table.schema, table.name)
    return any(names.get(oid, ours) == ours for oid in missing.oids)  # one that has no name may be this one


def _report_missing(ctx: Context, work: IntervalWork, tables: Sequence[TableRecord], interval: Interval) -> None:
    for each in work.missing:
        names = [table.qualified for table in tables if _touched(work, each, table)]
        if names:
            message = (
                f"{interval} lacks the transaction that committed at {each.lsn}, which was left out; the changelogs of "
                f"{', '.join(names)} say so at its place"
            )
            ctx.progress(message)
            ctx.ledger.events.add(ctx.name, slug="transaction-skipped", level="warning", message=message)


def _by_table(work: IntervalWork, interval: Interval) -> tuple[dict[int, list[_Landed]], list[_Landed]]:
    """Sort the interval's files by the table that they are of; return those of no known table apart."""
    by_oid = {table.oid: table for table in work.tables}
    by_name = {(table.schema, table.name): table for table in work.tables}
    files: dict[int, list[_Landed]] = defaultdict(list)
    strange: list[_Landed] = []
    for landed in _landed(work, interval):
        found = by_name.get((landed.relation.namespace, landed.relation.name))
        if landed.era == work.history.era:
            found = by_oid.get(landed.entry.oid, found)
        if found is None:
            strange.append(landed)
        else:
            files[found.oid].append(landed)
    return files, strange


def _landed(work: IntervalWork, interval: Interval) -> Iterable[_Landed]:
    shapes = {(record.relation.oid, record.version): record.relation for record in work.relations}
    for window in work.windows:
        for entry in window.files:
            if may_hold(entry, interval):
                yield _Landed(window.era, entry, shapes[entry.oid, entry.version])


def _order(
    ctx: Context, table: TableRecord, files: Sequence[_Landed], missing: tuple[MissingTransaction, ...]
) -> ChangelogTable:
    return ChangelogTable(
        oid=table.oid,
        target=ctx.pipeline.changelog_target(table.target),
        columns=_fields(table, files),
        files=tuple(
            replace(each.entry.at(_uri(ctx, each.entry)), era=each.era, reals=_reals(each.relation)) for each in files
        ),
        missing=missing,
    )


def _reals(relation: Relation) -> tuple[str, ...]:
    return tuple(each.name for each in relation.columns if is_real(builtin(each.type_oid, each.typmod)))


def _uri(ctx: Context, entry: FileEntry) -> str:
    """Return where a landing file lies. That one is missing stops this interval, and nothing that was merged long ago."""
    if not ctx.landing.exists(entry.path):
        raise LedgerError(
            "interval-gone",
            f"expected the landing file {entry.path} that the manifest lists, found none; "
            "restore it, or leave the interval as it is",
        )
    return ctx.landing.uri(entry.path)


def _fields(table: TableRecord, files: Iterable[_Landed]) -> tuple[LakeColumn, ...]:
    """Return the table's columns, then those that only the files have: they were dropped or renamed since."""
    known = {column.name: lake_column(column) for column in present(table.columns)}
    for relation in {each.relation for each in files}:
        for column in relation.columns:
            gone = LakeColumn(column.name, lake_type_of(builtin(column.type_oid, column.typmod)))
            known.setdefault(column.name, gone)
    return tuple(known.values()) or (LakeColumn(NO_COLUMNS_FIELD, "string"),)
