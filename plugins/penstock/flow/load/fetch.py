"""Fetch values of some columns, or rows of some partitions, where they are all that a table lacks, under one exact snapshot.

The snapshot sees what was committed before a position. What is read belongs into the stream right before it, and the
table goes on from there: its next merge brings the changes up to the position, what was read, and what came since, in one cut.
Whatever is not exact this way is left to the copy of the whole table.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from penstock.contract.manifest import FileEntry
from penstock.errors import PenstockError, SourceError
from penstock.flow.context import Context, on_change
from penstock.flow.load.read import Reads, changed_meanwhile, read_tables
from penstock.flow.load.spark_copy import ReadRequest
from penstock.flow.load.waiting import why_no_copy
from penstock.flow.schema.apply_plan import followed_changes
from penstock.flow.spark_job import Submit
from penstock.ledger import new_attempt
from penstock.ledger.loads import NewRead
from penstock.ledger.records import SchemaChange
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, TableFacts
from penstock.shapes.mirror_column import refilled
from penstock.shapes.plan import Plan, plan
from penstock.shapes.reads import ColumnRead, LeafRead, leaf_read, sends_all
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import Evidence, Policy
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.copy import having_labels
from penstock.source.slot import Exported, exact_snapshot
from penstock.units import several

_WITHOUT_SLOT = frozenset({"no-free-slot", "slot-creation-blocked"})
"""What hinders a temporary slot and no copy."""


def fetch(ctx: Context, records: Sequence[TableRecord], submit: Submit) -> frozenset[int]:
    """Fetch what these paused tables lack, where that is exact; return the oids of those that go on with it.

    Raises SourceError, LakeError, LedgerError for what concerns all of them.
    """
    fetches = _Fetches(ctx, candidates(ctx, records))
    try:
        read_tables(ctx, fetches, submit)
    except SourceError as error:
        if error.slug not in _WITHOUT_SLOT:
            raise
        ctx.progress(f"nothing less than whole tables can be copied: {error}")
    return frozenset(fetches.landed)


def candidates(ctx: Context, records: Sequence[TableRecord]) -> list[TableRecord]:
    """Return the tables that are paused for nothing but values of columns, or rows of partitions."""
    waiting = [
        record
        for record in records
        if record.remedy == "read" and on_change(ctx.pipeline, record.schema, record.name) == "follow"
    ]
    publishing = ctx.ledger.pipelines.get(ctx.name).publishing if waiting else None
    if publishing is None or not sends_all(publishing.sent):
        return []
    skipped = {oid for each in ctx.ledger.windows.skipped(ctx.name) for oid in each.oids}
    rebuilt = {each.oid for each in ctx.ledger.loads.builds(ctx.name)}
    return [record for record in waiting if record.oid not in skipped | rebuilt]


@dataclass(frozen=True, slots=True)
class _Fetch:
    """Hold what is read of a table: what it was, what it is from then on, and what of that belongs into the history of its shapes."""

    record: TableRecord
    request: ReadRequest
    text: str
    facts: TableFacts
    change: SchemaChange
    followed: Sequence[SchemaChange]

    def changes(self, files: Sequence[FileEntry], lsn: Lsn) -> list[SchemaChange]:
        """Return what belongs into the history of the table's shapes once it is read; the last one says what was read."""
        rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
        message = f"{self.change.message} as of {lsn}: {several(rows, 'row')}, {size} bytes"
        details = {**self.change.details, "lsn": str(lsn), "rows": rows, "bytes": size}
        return [*self.followed, replace(self.change, message=message, details=details)]


class _Fetches(Reads):
    """Read what paused tables lack; `landed` are those that go on with it."""

    def __init__(self, ctx: Context, records: Sequence[TableRecord]) -> None:
        super().__init__(ctx)
        self._waiting = {record.oid: record for record in records}
        self._reading: dict[int, _Fetch] = {}
        self._lsn = Lsn(0)
        self.landed: set[int] = set()

    def waits(self, but: Collection[int]) -> bool:
        return bool(self._waiting.keys() - but)

    @contextmanager
    def snapshot(self) -> Iterator[Exported]:
        ctx = self.ctx
        name, timeout = f"penstock_fetch_{new_attempt()[-12:]}", ctx.pipeline.source.slot_timeout
        with exact_snapshot(ctx.source, name, timeout=timeout, what=f"{ctx.name}:fetch") as exported:
            self._lsn = exported.lsn
            yield exported

    def requests(
        self, found: CatalogSnapshot, but: Collection[int]
    ) -> tuple[Sequence[ReadRequest], Mapping[int, PenstockError]]:
        """Return what to read of each; a table that needs more than a part of its rows is left to a copy."""
        tables = found.by_oid
        chosen = {
            oid: _chosen(self.ctx, record, tables.get(oid), self._lsn)
            for oid, record in self._waiting.items()
            if oid not in but
        }
        self._reading = {oid: each for oid, each in chosen.items() if each is not None}
        self._waiting = {oid: each.record for oid, each in self._reading.items()}
        for each in self._reading.values():
            self.ctx.progress(f"{each.record.qualified}: fetching {each.text} as of {self._lsn}")
        return [each.request for each in self._reading.values()], {}

    def unlanded(self) -> Sequence[LoadRecord]:
        found = self.ctx.ledger.loads.fetches(self.ctx.name) if self._reading else []
        return [each for each in found if each.state == "copying" and each.oid in self._reading]

    def land(self, load: LoadRecord, files: Sequence[FileEntry], now: SourceTable | None) -> PenstockError | None:
        """Take it in if the table is as the snapshot showed it as far as capture has come: then its next window notices the rest."""
        ctx, name, fetch = self.ctx, load.qualified, self._reading[load.oid]
        if now is None or now.shape != fetch.facts.accepted.shape:
            ctx.progress(f"{name} was changed while a part of it was fetched")
            return changed_meanwhile(name, "it was changed")
        changes = fetch.changes(files, load.lsn)
        if not ctx.ledger.loads.land(ctx.name, load.copy_id, fetch.facts, files=files, changes=changes, seen=self.seen):
            return changed_meanwhile(name, "capture has come further, or it does not wait any more")
        ctx.progress(f"{name}: {changes[-1].message}")
        self.landed.add(load.oid)
        del self._waiting[load.oid]
        return None


def _chosen(ctx: Context, record: TableRecord, now: SourceTable | None, lsn: Lsn) -> _Fetch | None:
    """Return what to read of a table as it is now, or None where that is all of it."""
    lake = ctx.pipeline.lake
    policy = Policy(on_dropped_column=lake.on_dropped_column, on_dropped_partition=lake.on_dropped_partition)
    through = record.complete_through or Lsn(0)
    decided = plan(record, now, Evidence(), policy, through)
    if now is not None and why_no_copy(now, None, joining=False) is None:
        if decided.columns_read is not None:
            return _of_columns(record, now, decided, decided.columns_read)
        found = decided.leaves_read
        if decided.reason is None:  # what made it wait is over: rows may have come and gone
            keep = policy.on_dropped_partition == "keep"
            found = leaf_read(record.accepted, now, (), decided.gone, keep=keep, through=through)
        if found is not None:
            return _of_partitions(record, now, decided, found, lsn)
    ctx.progress(f"{record.qualified} needs more than a part of its rows: {decided.reason or 'it is as it was'}")
    return None


def _of_columns(record: TableRecord, now: SourceTable, decided: Plan, read: ColumnRead) -> _Fetch:
    names = [column.name for column in now.columns if column.attnum in read.attnums]
    where = None if read.labels is None else having_labels(names, read.labels)
    request = ReadRequest(now, NewRead(now.oid, "columns", tuple(sorted(read.attnums)), whole=read.whole), where)
    columns = refilled(decided.columns, record.columns, read.attnums) if read.whole else decided.columns
    text = f"the key and {', '.join(names)}" + ("" if read.whole else " of rows that hold a renamed label")
    change = SchemaChange(now.oid, "fetch-columns", f"{text} were fetched", {"columns": names})
    facts = replace(record, identity=now.identity, columns=columns, accepted=Accepted(now.shape))
    return _Fetch(record, request, text, facts, change, followed_changes(record.oid, decided))


def _of_partitions(record: TableRecord, now: SourceTable, decided: Plan, read: LeafRead, lsn: Lsn) -> _Fetch:
    texts = frozenset(column.name for column in decided.columns if column.as_text)
    chosen = tuple(leaf for leaf in now.leaves if leaf.oid in read.leaves)
    leaves, attnums = [leaf.name for leaf in chosen], tuple(column.attnum for column in now.columns)
    new = NewRead(now.oid, "partitions", attnums, stays=read.stays, leaves=tuple(leaves))
    request = ReadRequest(replace(now, leaves=chosen), new, texts=texts)
    text = f"the rows of {', '.join(leaves)}" if leaves else "no partition"
    message = f"{text} were fetched, since {', '.join(read.changed) or 'nothing'} changed"
    change = SchemaChange(now.oid, "fetch-partitions", message, {"partitions": leaves, "changed": list(read.changed)})
    kept = tuple(replace(each, lsn=each.lsn or lsn) for each in read.kept)
    facts = replace(record, identity=now.identity, columns=decided.columns, accepted=Accepted(now.shape, gone=kept))
    return _Fetch(record, request, text, facts, change, followed_changes(record.oid, decided))
