"""Verify: prove that source and lake hold the same rows at one exact position, while both continue.

The source is read under the snapshot of a temporary slot, the lake at the cut that lies at the same position. Nothing
is shared with the pipeline: values come by COPY and by PyIceberg. Whole tables, or a rolling sample of their keys.
A table that cannot be read is a finding, and the others are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pyarrow as pa

from penstock.compare.fingerprint import Fingerprint
from penstock.compare.lake_reader import LakeReader, LakeTable, lake_reader, sql_catalog
from penstock.compare.report import ComparedTable
from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.flow.guards import running
from penstock.flow.health import alarms
from penstock.flow.health.alerts import Deliver, no_delivery
from penstock.flow.verify.barrier import Merge, cut_at, marked_snapshot
from penstock.flow.verify.compare import compare_table, compared, fingerprint
from penstock.flow.verify.report import UNPUBLISHED, Verification, finding, require_equal
from penstock.flow.verify.sampling import Chosen, choose
from penstock.lake.columns import columns_stamp
from penstock.ledger.records import CutRecord
from penstock.ledger.table_records import TableRecord
from penstock.ledger.verifications import Finding, Mode, Outcome
from penstock.source import catalog, catalog_snapshot
from penstock.source.reading import TableError, of_one_table
from penstock.source.slot import Exported
from penstock.source.text_rows import rendered
from penstock.units import several

__all__ = ["Verification", "require_equal", "verify"]

_Step = TypeVar("_Step")
_REWRITTEN = "it was truncated, rewritten, renamed or dropped since the position"


@dataclass(frozen=True, slots=True)
class _SourceSide:
    """Hold what was chosen, and the source's side of it; without a fingerprint there is a reason, or trouble."""

    chosen: Chosen
    table: ComparedTable | None = None
    here: Fingerprint | None = None
    reason: str | None = None
    trouble: str | None = None


def verify(
    ctx: Context,
    *,
    tables: Sequence[str] = (),
    mode: Mode = "whole",
    merge: Merge,
    deliver: Deliver = no_delivery,
    lake_properties: Mapping[str, str] | None = None,
) -> Verification:
    """Compare tables of a running pipeline at one position, and remember what was found.

    Without `tables` those that the pipeline file chooses. A difference is a finding, no error, and so is a table that
    cannot be read. Raises ConfigError for
    tables that cannot be compared so, before any work; LedgerError("work-under-way") during another verification;
    LakeError("verify-late"), and whatever capture and merge raise.
    """
    running(ctx)
    properties = {**sql_catalog(ctx.catalog), **(lake_properties or {})}
    with lake_reader(ctx.pipeline.lake.catalog, properties) as lake, ctx.ledger.locks.hold(ctx.name, "verify"):
        chosen = choose(ctx, lake, tables, mode)
        with marked_snapshot(ctx, "verify") as exact:
            number = ctx.ledger.verifications.begin(ctx.name, mode=mode, lsn=exact.lsn)
            ctx.progress(f"verifying at {exact.lsn}: {several(len({each.record.oid for each in chosen}), 'table')}")
            run = _Run(ctx, exact, lake, number)
            read = list(_staged(ctx, "reading the source", run.read_source(chosen), len(chosen), _rows_read))
            cut = cut_at(ctx, exact.lsn, merge)
            findings = tuple(
                _staged(ctx, "comparing with the lake", (run.compare(each, cut) for each in read), len(read), _rows_met)
            )
        ctx.ledger.verifications.finish(number)
        alarms.compared(ctx, [each.oid for each in findings], deliver)
        keep = timedelta(seconds=ctx.pipeline.health.keep)
        ctx.ledger.verifications.trim(ctx.name, before=datetime.now(UTC) - keep)
    return Verification(findings, number, exact.lsn)


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


def _rows_read(side: _SourceSide) -> int:
    return side.here.rows if side.here else 0


def _rows_met(found: Finding) -> int:
    return found.lake_rows


@dataclass(frozen=True, slots=True)
class _Run:
    """Carry one verification out."""

    ctx: Context
    exact: Exported
    lake: LakeReader
    number: int

    def read_source(self, chosen: Sequence[Chosen]) -> Iterator[_SourceSide]:
        """Read the source's side of everything, while the lake is still on its way."""
        snapshot = catalog_snapshot.read_catalog(self.exact.conn, self.ctx.pipeline.publication)
        published = snapshot.by_oid
        for each in chosen:
            if each.unreadable is not None:
                yield _SourceSide(each, trouble=each.unreadable)
            elif each.skipped is not None:
                yield _SourceSide(each, reason=each.skipped)
            elif each.record.oid not in published:
                yield _SourceSide(each, reason=UNPUBLISHED)
            else:
                try:
                    with of_one_table(), self.exact.conn.transaction():
                        table = catalog.with_filter(
                            self.exact.conn, self.ctx.pipeline.publication, published[each.record.oid]
                        )
                except TableError as error:
                    yield _failed(each, error)
                else:
                    yield self._read_source(each, replace(compared(table, each.record, snapshot.sent), part=each.part))

    def _read_source(self, chosen: Chosen, table: ComparedTable) -> _SourceSide:
        try:
            here = fingerprint(table, self._rows)
        except TableError as error:
            return _failed(chosen, error)
        self.ctx.progress(f"read {chosen.label}: {several(here.rows, 'row')} in the source")
        return _SourceSide(chosen, table, here)

    def _rows(self, table: ComparedTable, columns: Sequence[str]) -> Generator[pa.Table, None, None]:
        """Read in a transaction of this table's own, so that its lock is held no longer than that."""
        name, seconds = self.exact.snapshot_name, self.ctx.pipeline.source.read_timeout
        with (
            rendered(self.ctx.reader, seconds=seconds, snapshot_name=name, what=f"{self.ctx.name}:verify") as texts,
            of_one_table(),
        ):
            texts.require_same(table.relations)  # a name that is gone could not be read
            yield from texts.rows(table.relations, columns, table.where, table.part)
            texts.require_same(table.relations)

    def compare(self, side: _SourceSide, cut: CutRecord) -> Finding:
        """Compare one table or share with the lake at the cut, and record what was found."""
        found = self._finding(side, cut)
        self.ctx.ledger.verifications.add_finding(self.ctx.name, self.number, found)
        return found

    def _finding(self, side: _SourceSide, cut: CutRecord) -> Finding:
        if side.trouble is not None:
            return self._unreadable(side, side.trouble)
        if side.table is None:
            return self._skipped(side, side.reason or "")
        try:
            there = self._lake_table(side, cut)
            if isinstance(there, str):
                return self._skipped(side, there)
            found = compare_table(side.table, self._rows, there, side.here)
        except TableError as error:
            return self._skipped(side, _REWRITTEN) if _is_rewritten(error) else self._unreadable(side, str(error))
        except LakeError as error:
            if error.slug != "lake-unreadable":
                raise
            return self._unreadable(side, str(error))
        for line in found.lines():
            self.ctx.progress(line)
        return finding(side.chosen.record.oid, found, **side.chosen.place)

    def _changing(self, before: TableRecord, cut: CutRecord) -> str | None:
        """Say what became of a table since the source was side, or is to become of it after the cut; None for nothing."""
        now = self._record(before.oid)
        if columns_stamp(now.columns) != columns_stamp(before.columns):
            return "its columns changed while it was verified"  # the source was read under the names of before
        if now.accepted.leaving_after(cut.lsn):
            return "the rows of a partition that was dropped are still to go"
        return None

    def _lake_table(self, side: _SourceSide, cut: CutRecord) -> LakeTable | str:
        """Return the lake's table as its readers see it at the cut, or why it is unknown; raises LakeError."""
        if reason := self._changing(side.chosen.record, cut):
            return reason
        oid = side.chosen.record.oid
        entry = next((entry for entry in cut.tables if entry["oid"] == oid), None)
        if entry is None or entry["state"] != "ready" or entry["complete_through"] != str(cut.lsn):
            return f"the cut does not hold it: it is {entry['state'] if entry else 'unknown'}"
        before = self._record(oid)
        found = self.lake.table(before.target)
        now = self._record(oid)
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

    def _record(self, oid: int) -> TableRecord:
        (found,) = [record for record in self.ctx.ledger.tables.all(self.ctx.name) if record.oid == oid]
        return found

    def _skipped(self, side: _SourceSide, reason: str) -> Finding:
        self.ctx.progress(f"{side.chosen.label}: not compared, {reason}")
        return _finding_of(side.chosen, "skipped", reason)

    def _unreadable(self, side: _SourceSide, reason: str) -> Finding:
        self.ctx.progress(f"{side.chosen.label}: could not be side, {reason}")
        return _finding_of(side.chosen, "unreadable", reason)


def _failed(chosen: Chosen, error: TableError) -> _SourceSide:
    return _SourceSide(chosen, reason=_REWRITTEN) if _is_rewritten(error) else _SourceSide(chosen, trouble=str(error))


def _is_rewritten(error: TableError) -> bool:
    return error.slug == "table-rewritten"


def _finding_of(chosen: Chosen, outcome: Outcome, reason: str) -> Finding:
    record = chosen.record
    return Finding(record.oid, record.schema, record.name, outcome, reason=reason, **chosen.place)
