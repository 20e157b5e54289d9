"""What to read of one table where that is less than all of it: values of some columns by key, or the rows of some partitions.

It is decided by the table in the snapshot under which it is read, held against what the ledger knows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.contract.manifest import FileEntry
from penstock.flow.context import Context
from penstock.flow.load.blockers import why_no_copy
from penstock.flow.schema.apply_plan import followed_changes
from penstock.jobs.copy_plan import CopyRange
from penstock.ledger.loads import LandedFetch, NewFetch
from penstock.ledger.records import SchemaChange
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted
from penstock.shapes.mirror_column import refilled
from penstock.shapes.plan import Plan, plan
from penstock.shapes.reads import ColumnRead, LeafRead, leaf_read
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import Evidence, Policy
from penstock.shapes.table_facts import TableFacts
from penstock.source.copy import having_labels
from penstock.units import several


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """Read the key and some columns of a table: `record` is what it was, `now` what it is in the snapshot."""

    record: TableRecord
    now: SourceTable
    decided: Plan
    fetch: ColumnRead

    @property
    def source(self) -> SourceTable:
        """Return the table with the leaves that are read."""
        return self.now

    @property
    def new(self) -> NewFetch:
        """Return what the ledger is to know before anything is read."""
        return NewFetch(self.now.oid, sorted(self.fetch.attnums), self.fetch.whole)

    @property
    def said(self) -> str:
        """Say what is read."""
        rows = "" if self.fetch.whole else " of rows that hold a renamed label"
        return f"the key and {', '.join(self._columns)}{rows}"

    def part(self, whole: CopyRange, lsn: Lsn) -> CopyRange:
        """Order what is read of a range: it lands as changes right before a position."""
        labels, names = self.fetch.labels, self._names
        attnums = tuple(
            column.attnum for column in self.now.columns if column.key or column.attnum in self.fetch.attnums
        )
        return replace(
            whole,
            columns=tuple(names[attnum] for attnum in attnums),
            where=None if labels is None else having_labels(self._columns, labels),
            typed=(),
            attnums=attnums,
            commit_lsn=lsn - 1,  # no commit begins there: its record is longer
        )

    def landed(self, files: Sequence[FileEntry], lsn: Lsn) -> LandedFetch:
        """Return what the ledger takes over."""
        columns = self.decided.columns
        if self.fetch.whole:
            columns = refilled(columns, self.record.columns, self.fetch.attnums)
        facts = replace(_facts(self.record, self.now), columns=columns)
        what = SchemaChange(self.now.oid, "fetch-columns", f"{self.said} were fetched", {"columns": self._columns})
        return _landed(self, facts, files, what, lsn)

    @property
    def _columns(self) -> list[str]:
        return [self._names[attnum] for attnum in sorted(self.fetch.attnums)]

    @property
    def _names(self) -> dict[int, str]:
        return {column.attnum: column.name for column in self.now.columns}


@dataclass(frozen=True, slots=True)
class PartitionOrder:
    """Read all rows of some partitions of a table: `record` is what it was, `now` what it is in the snapshot."""

    record: TableRecord
    now: SourceTable
    decided: Plan
    fetch: LeafRead

    @property
    def source(self) -> SourceTable:
        """Return the table with the leaves that are read."""
        return replace(self.now, leaves=tuple(leaf for leaf in self.now.leaves if leaf.oid in self.fetch.leaves))

    @property
    def new(self) -> NewFetch:
        """Return what the ledger is to know before anything is read."""
        attnums, leaves = [column.attnum for column in self.now.columns], [leaf.name for leaf in self.source.leaves]
        return NewFetch(self.now.oid, attnums, whole=False, stays=self.fetch.stays, leaves=leaves)

    @property
    def said(self) -> str:
        """Say what is read."""
        if not self.fetch.leaves:
            return "no partition"
        return f"the rows of {', '.join(leaf.name for leaf in self.source.leaves)}"

    def part(self, whole: CopyRange, _lsn: Lsn) -> CopyRange:
        """Order what is read of a range: all of it, as a copy does; as texts what the lake has as text."""
        texts = {column.name for column in self.decided.columns if column.as_text}
        return replace(whole, typed=tuple(pair for pair in whole.typed if pair[0] not in texts))

    def landed(self, files: Sequence[FileEntry], lsn: Lsn) -> LandedFetch:
        """Return what the ledger takes over."""
        kept = tuple(replace(each, lsn=each.lsn or lsn) for each in self.fetch.kept)
        accepted = Accepted(self.now.shape, gone=kept)
        facts = replace(_facts(self.record, self.now), columns=self.decided.columns, accepted=accepted)
        text = f"{self.said} were fetched, since {', '.join(self.fetch.changed) or 'nothing'} changed"
        details = {"partitions": [leaf.name for leaf in self.source.leaves], "changed": list(self.fetch.changed)}
        return _landed(self, facts, files, SchemaChange(self.now.oid, "fetch-partitions", text, details), lsn)


Order = ColumnOrder | PartitionOrder


def order_of(ctx: Context, record: TableRecord, now: SourceTable | None) -> Order | None:
    """Return what to read of a table as it is now, or None where that is all of it."""
    lake = ctx.pipeline.lake
    policy = Policy(on_dropped_column=lake.on_dropped_column, on_dropped_partition=lake.on_dropped_partition)
    through = record.complete_through or Lsn(0)
    decided = plan(record, now, Evidence(), policy, through)
    if now is not None and why_no_copy(now, None, joining=False) is None:
        if decided.columns_read is not None:
            return ColumnOrder(record, now, decided, decided.columns_read)
        found = decided.leaves_read
        if decided.reason is None:  # what made it wait is over: rows may have come and gone
            keep = policy.on_dropped_partition == "keep"
            found = leaf_read(record.accepted, now, (), decided.gone, keep=keep, through=through)
        if found is not None:
            return PartitionOrder(record, now, decided, found)
    ctx.progress(f"{record.qualified} needs more than a part of its rows: {decided.reason or 'it is as it was'}")
    return None


def _facts(record: TableRecord, now: SourceTable) -> TableFacts:
    return replace(record.facts, identity=now.identity, accepted=Accepted(now.shape))


def _landed(order: Order, facts: TableFacts, files: Sequence[FileEntry], what: SchemaChange, lsn: Lsn) -> LandedFetch:
    """Return files and facts with what belongs into the history of the table's shapes."""
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    message = f"{what.message} as of {lsn}: {several(rows, 'row')}, {size} bytes"
    details = {**what.details, "lsn": str(lsn), "rows": rows, "bytes": size}
    followed = followed_changes(order.record.oid, order.decided)
    return LandedFetch(facts, files, [*followed, replace(what, message=message, details=details)])
