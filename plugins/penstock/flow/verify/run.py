"""Verify: prove that source and lake hold the same rows at one exact position, while both continue.

The source is read under the snapshot of a temporary slot, the lake at the cut that lies at the same position. Nothing
is shared with the pipeline: values come by COPY and by PyIceberg. Whole tables, or a rolling sample of their keys.
A table that cannot be read is a finding, and the others are compared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from penstock.compare.lake_reader import LakeReader, LakeTable, lake_reader
from penstock.compare.report import Comparison, TableComparison
from penstock.conditions import Directive
from penstock.errors import LakeError, LedgerError
from penstock.flow.context import Context
from penstock.flow.guards import require_named, running
from penstock.flow.health import alarms
from penstock.flow.health.alerts import Deliver, no_delivery
from penstock.flow.verify.barrier import Merge, cut_at, marked_snapshot
from penstock.flow.verify.compare import Comparer, SourceSide, compare, known_tables
from penstock.flow.verify.sampling import choose
from penstock.lake.columns import columns_stamp
from penstock.ledger.records import CutRecord
from penstock.ledger.table_records import TableRecord
from penstock.ledger.verifications import Mode
from penstock.lsn import Lsn
from penstock.units import several

_Step = TypeVar("_Step")
_REWRITTEN = "it was truncated, rewritten, renamed or dropped since the position"
_NOT_IN_CUT: Mapping[str, Any] = {"state": "unknown"}


def verify(
    ctx: Context,
    *,
    tables: Sequence[str] = (),
    mode: Mode = "whole",
    merge: Merge,
    deliver: Deliver = no_delivery,
) -> Comparison:
    """Compare tables of a running pipeline at one position, and remember what was found.

    Without `tables` those that the pipeline file chooses. A difference is a finding, no error, and so is a table that
    cannot be read. Raises ConfigError for
    tables that cannot be compared so, before any work; LedgerError("work-under-way") during another verification;
    LakeError("verify-late"), and whatever capture and merge raise.
    """
    running(ctx)
    with lake_reader(ctx.pipeline.lake.catalog, ctx.catalog) as lake, ctx.ledger.locks.hold(ctx.name, "verify"):
        chosen = choose(ctx, lake, tables, mode)
        with marked_snapshot(ctx, "verify") as exact:
            number = ctx.ledger.verifications.begin(ctx.name, mode=mode, lsn=exact.lsn)
            ctx.progress(f"verifying at {exact.lsn}: {several(len({each.record.oid for each in chosen}), 'table')}")
            comparer = Comparer(ctx, exact, "verify")
            sides = _staged(ctx, "reading the source", comparer.source_sides(chosen), len(chosen), _rows_read)
            read = [_reported(ctx, side) for side in sides]
            at_cut = _AtCut(ctx, lake, cut_at(ctx, exact.lsn, merge))
            compared = (_record(ctx, number, side, comparer.with_lake(side, at_cut.table)) for side in read)
            found = tuple(_staged(ctx, "comparing with the lake", compared, len(read), lambda each: each.lake_rows))
        ctx.ledger.verifications.finish(number)
        alarms.compared(ctx, [each.oid for each in found], deliver)
        keep = timedelta(seconds=ctx.pipeline.health.keep)
        ctx.ledger.verifications.trim(ctx.name, before=datetime.now(UTC) - keep)
    return Comparison(found, number, exact.lsn)


def verify_now(ctx: Context, *, tables: Sequence[str] = ()) -> Comparison:
    """Compare these tables, or all, paused ones too, as both sides are: for a source without writers, or a paused table.

    What is written meanwhile, or not merged yet, shows as a difference. So nothing is recorded, and no alarm opens. Raises
    LedgerError("not-bootstrapped") where there is no table yet, ConfigError("table-unknown"), SourceError, LedgerError or
    LakeError for what concerns all tables, and, once all are compared, what alerts a person at once, such as a damaged source.
    """
    known = known_tables(ctx)
    if not known:  # "all equal" of nothing would be taken for an answer
        raise LedgerError(
            "not-bootstrapped", f"expected pipeline {ctx.name} to have tables to compare, it has none yet; bootstrap it"
        )
    records = require_named(known, tables) if tables else known
    found = compare(ctx, records)
    for each in found.tables:
        if each.trouble is not None and each.trouble.directive is Directive.PAGE:
            raise each.trouble
    return found


def _staged(
    ctx: Context, what: str, steps: Iterator[_Step], total: int, rows_of: Callable[[_Step], int]
) -> Iterator[_Step]:
    """Yield the steps, and say how many are done, with how many rows."""
    rows = 0
    ctx.stage(what, 0, total)
    for done, step in enumerate(steps, 1):
        rows += rows_of(step)
        yield step
        ctx.stage(what, done, total, rows)


def _rows_read(side: SourceSide) -> int:
    return side.here.rows if side.here else 0


def _reported(ctx: Context, side: SourceSide) -> SourceSide:
    if side.here is not None:
        ctx.progress(f"read {side.chosen.empty.label}: {several(side.here.rows, 'row')} in the source")
    return side


def _record(ctx: Context, number: int, side: SourceSide, found: TableComparison) -> TableComparison:
    """Record what was found of one table or share."""
    if found.rewritten:  # no later look has this position
        found = side.chosen.skipped(_REWRITTEN)
    for line in found.lines():
        ctx.progress(line)
    ctx.ledger.verifications.add_finding(ctx.name, number, found.recorded())
    return found


@dataclass(frozen=True, slots=True)
class _AtCut:
    """Find the lake's tables as their readers see them at a cut."""

    ctx: Context
    lake: LakeReader
    cut: CutRecord

    def table(self, record: TableRecord) -> LakeTable | str:
        """Return the lake's table, or why it is unknown, `record` being from when the source was read; raises LakeError."""
        before = self._now(record.oid)
        entry = next((entry for entry in self.cut.tables if entry["oid"] == record.oid), _NOT_IN_CUT)
        if reason := self._unknown(record, before, entry):
            return reason
        found = self.lake.table(before.target)
        now = self._now(record.oid)
        if now.target != before.target:
            return "it was renamed while it was verified"
        if found is None:
            raise LakeError(
                "lake-unreadable",
                f"expected the lake to have table {'.'.join(now.target)}, which the cut shows, but its catalog "
                "has none of that name; register it again, or resync it",
            )
        at_cut = found.as_of_cut(entry["snapshot_id"])
        if at_cut is not None:
            return at_cut
        if now.snapshot_id == entry["snapshot_id"]:
            return found  # another writer moved it back or put another in its place: that is what readers see
        return "it was replaced while it was verified"

    def _unknown(self, before: TableRecord, now: TableRecord, entry: Mapping[str, Any]) -> str | None:
        """Say why the cut does not show the rows that were read, None where it does."""
        if columns_stamp(now.columns) != columns_stamp(before.columns):
            return "its columns changed while it was verified"  # the source was read under the names of before
        if now.accepted.leaving_after(self.cut.lsn):
            return "the rows of a partition that was dropped are still to go"
        if entry["state"] != "ready" or entry["complete_through"] != str(self.cut.lsn):
            return f"the cut does not hold it: it is {entry['state']}"
        return None

    def _now(self, oid: int) -> TableRecord:
        (found,) = [record for record in self.ctx.ledger.tables.all(self.ctx.name) if record.oid == oid]
        return found


def require_equal(differing: Sequence[str], lsn: Lsn | str | None, unreadable: Sequence[str] = ()) -> None:
    """Raise LakeError: "verify-differs" when there are tables that differ, else "verify-unreadable" for those not compared."""
    at = "now" if lsn is None else f"at {lsn}"
    if differing:
        raise LakeError(
            "verify-differs",
            f"expected source and lake to be equal {at}, but these tables differ: {', '.join(differing)}; the log of "
            "the comparison has counts, columns and hashes of keys",
        )
    if unreadable:
        raise LakeError(
            "verify-unreadable",
            f"expected to read every table on both sides {at}, but not so: {', '.join(unreadable)}; the log of the "
            "comparison has the reasons, and all other tables were compared",
        )
