"""A resync's request, held against what is there, and its copy: under a snapshot of its own, next to a table that stays as it is.

No slot has a part in it, so no WAL is kept for it, and capture continues. A table that cannot be copied keeps no other waiting. A
dry run prints what would become of each table. What a replay needs is in `replay.py`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager

from penstock.contract.manifest import FileEntry
from penstock.errors import LedgerError, PenstockError, SourceError
from penstock.flow import archives, table_status
from penstock.flow.context import Context
from penstock.flow.guards import require_named, require_running
from penstock.flow.load import waiting
from penstock.flow.load.fetch import candidates
from penstock.flow.load.read import TRIES, Reads, catalog_now, changed_meanwhile
from penstock.flow.load.spark_copy import ReadRequest
from penstock.flow.load.waiting import why_no_copy
from penstock.flow.schema.apply_plan import apply
from penstock.flow.schema.names import table_facts
from penstock.flow.schema.run import added_only
from penstock.jobs.pointers import rebuilt
from penstock.ledger import new_attempt
from penstock.ledger.loads import NewBuild, NewRead
from penstock.ledger.table_records import LoadCause, LoadRecord, TableRecord
from penstock.shapes.accepted import Accepted
from penstock.shapes.diff import is_written_otherwise
from penstock.shapes.plan import plan
from penstock.shapes.source_table import SourceTable
from penstock.source import slot
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.slot import Exported


def resync_lines(ctx: Context, tables: Sequence[str] | None, *, woken: bool = False) -> list[str]:
    """Say what a resync would do; changes nothing, and raises what the resync would raise before its work."""
    records = to_copy(ctx, tables, woken=woken)
    if not records:
        return ["no table waits for a copy: nothing to do"]
    open_ = open_rebuilds(ctx, [record.oid for record in records], "resync")
    found = catalog_now(ctx, sizes=True)
    if tables is not None:
        fit_to_copy(ctx, [record for record in records if record.oid not in open_], found, named=True)
    fetched = {record.oid for record in candidates(ctx, records)} if tables is None else set()
    return [
        f"{record.qualified} ({record.state}): "
        + (
            f"the resync {open_[record.oid].id} continues, it is {open_[record.oid].state}"
            if record.oid in open_
            else _outlook(ctx, record, found, fetched=record.oid in fetched)
        )
        for record in records
    ]


def _outlook(ctx: Context, record: TableRecord, found: CatalogSnapshot, *, fetched: bool) -> str:
    """Say what would become of one table: as `resync` decides, in its order."""
    now = found.by_oid.get(record.oid)
    if now is None:
        return "it is not in the publication any more: not copied; the next capture notes it"
    copied = f"{now.bytes >> 20} MiB are copied, and {'.'.join(record.target)} is switched in one cut"
    if fetched:
        return f"what is in doubt of it is fetched where that is exact; else {copied}"
    obstacle = _obstacle(ctx, record, found)
    return f"not copied: {obstacle}" if obstacle else copied


def _obstacle(ctx: Context, record: TableRecord, found: CatalogSnapshot) -> PenstockError | None:
    """Return why a copy would not make a table right, or would lose rows, or None."""
    now = found.by_oid.get(record.oid)
    if now is None:
        return SourceError(
            "table-unpublished",
            f"expected {record.qualified} in publication {ctx.pipeline.publication}, but it was dropped or left it; add it to the "
            "publication again, then resync it",
        )
    return archives.refusal(ctx, record, now) or why_no_copy(now, found.publication, joining=record.state == "new")


def to_copy(ctx: Context, tables: Sequence[str] | None, *, woken: bool = False) -> list[TableRecord]:
    """Return the tables to copy: those named, or all that wait for a copy, but for those that a replay builds.

    Raises ConfigError("table-unknown"), LedgerError("table-not-ready" | "pipeline-halted" | "not-bootstrapped").
    """
    require_running(ctx)
    known = [record for record in ctx.ledger.tables.all(ctx.name) if record.state != "dropped"]
    if tables is None:
        replayed = {each.oid for each in ctx.ledger.loads.builds(ctx.name) if each.cause == "replay"}
        return [record for record in waiting.due(ctx, known, woken=woken) if record.oid not in replayed]
    records = require_named(known, tables)
    for record in records:
        if record.state in ("copying", "copied"):
            raise not_ready(record, "to be new, ready or paused", "let its first copy be merged, then resync it")
    return records


def fit_to_copy(
    ctx: Context, records: Sequence[TableRecord], found: CatalogSnapshot, *, named: bool = False
) -> list[TableRecord]:
    """Return the tables that a copy makes right, and loses nothing of; note once why it would not for the others.

    What has left the publication again is left out: the next capture notes it. Of tables that were `named` it raises why.
    """
    fit = []
    for record in records:
        obstacle = _obstacle(ctx, record, found)
        if obstacle is None:
            fit.append(record)
        elif named:
            raise obstacle
        elif record.oid not in found.by_oid:
            ctx.progress(f"{record.qualified} is not in the publication any more: not copied")
        else:
            table_status.warn(ctx, obstacle.slug, obstacle.message, record.oid)
    return fit


def open_rebuilds(ctx: Context, oids: Sequence[int], kind: LoadCause) -> Mapping[int, LoadRecord]:
    """Return the open rebuilds in place of these tables; raises LedgerError("rebuild-open") for one of another kind."""
    found = {
        each.oid: each for each in ctx.ledger.loads.builds(ctx.name) if each.oid in oids and each.cause != "shadow"
    }
    for each in found.values():
        if each.cause != kind:
            raise LedgerError(
                "rebuild-open",
                f"expected no open rebuild of {each.qualified}, but its {each.cause} {each.id} is {each.state} since "
                f"{each.started_at:%F %T} UTC; run {each.cause} again to end it, or abandon it, then start over",
            )
    return found


def not_ready(record: TableRecord, need: str, step: str) -> LedgerError:
    """Make the error of a table that is in another state than a rebuild needs."""
    return LedgerError(
        "table-not-ready", f"expected {record.schema}.{record.name} {need}, but it is {record.state}; {step}"
    )


class Copies(Reads):
    """Copy the tables of resyncs that have no whole copy yet; `ids` are their loads by oid, of those that were begun before, too.

    A table that was `named` and is not fit to be copied is an error; else it is left out.
    """

    def __init__(
        self, ctx: Context, records: Sequence[TableRecord], going_on: Mapping[int, LoadRecord], *, named: bool
    ) -> None:
        super().__init__(ctx)
        self._records = {record.oid: record for record in records}
        self._named = named
        self._before: Mapping[int, SourceTable] = {}
        self._hindered: Mapping[int, PenstockError] = {}
        self.ids = {oid: each.id for oid, each in going_on.items()}

    def waits(self, but: Collection[int]) -> bool:
        return bool(self._waiting(but))

    def _waiting(self, but: Collection[int] = ()) -> list[TableRecord]:
        """Return the tables that have no load yet, or one that is being copied."""
        copying = {each.oid for each in self.unlanded()}
        return [
            record
            for oid, record in self._records.items()
            if oid not in but and (oid not in self.ids or oid in copying)
        ]

    def snapshot(self) -> AbstractContextManager[Exported]:
        """Hold a snapshot of now, after the transactions that it has to see."""
        tables = self._waiting()
        self._before = waiting.with_named_parts(self.ctx, tables)
        self._hindered = waiting.hindered(self.ctx, tables, self._before)
        return slot.export_snapshot(self.ctx.source, what=f"{self.ctx.name}:resync")

    def requests(
        self, found: CatalogSnapshot, but: Collection[int]
    ) -> tuple[Sequence[ReadRequest], Mapping[int, PenstockError]]:
        ctx, tables = self.ctx, found.by_oid
        failed: dict[int, PenstockError] = {
            load.oid: _left(ctx, load) for load in self.unlanded() if load.oid not in tables
        }
        new = [record for record in self._waiting(but) if record.oid not in self.ids]
        fit = {record.oid for record in fit_to_copy(ctx, new, found, named=self._named)}
        for oid in {record.oid for record in new} - fit:
            del self._records[oid]
        failed |= {oid: error for oid, error in self._hindered.items() if oid in self._records}
        failed |= {
            oid: changed_meanwhile(before.qualified, "its types were altered before its snapshot")
            for oid, before in self._before.items()
            if oid in self._records and oid in tables and is_written_otherwise(before.shape, tables[oid])
        }
        pending = [tables[record.oid] for record in self._waiting({*but, *failed})]
        for table in pending:
            if table.oid in self.failed:
                ctx.progress(f"{table.qualified} is copied again: {self.failed[table.oid]}")
        return [ReadRequest(each, NewRead(each.oid, "resync", build=self._build(each))) for each in pending], failed

    def _build(self, table: SourceTable) -> NewBuild:
        facts, id_ = table_facts(self.ctx, table), self.ids.setdefault(table.oid, new_attempt())
        return NewBuild(id_, "resync", facts, rebuilt(self.ctx.pipeline.namespace, facts.target, id_))

    def unlanded(self) -> Sequence[LoadRecord]:
        ids = set(self.ids.values())
        return [each for each in self.ctx.ledger.loads.builds(self.ctx.name, states=["copying"]) if each.id in ids]

    def land(self, load: LoadRecord, files: Sequence[FileEntry], now: SourceTable | None) -> PenstockError | None:
        """Take it in unless the table was altered since the snapshot in a way that the stream does not carry."""
        ctx = self.ctx
        if now is None:
            return _left(ctx, load)
        decided = plan(load, now, policy=added_only(ctx, now))
        if decided.reason is not None:
            ctx.progress(f"{load.qualified}: {decided.reason} while it was copied; copying it again")
            return changed_meanwhile(load.qualified, decided.reason)
        if decided.events:
            apply(ctx, load, decided, Accepted(now.shape))
        ctx.ledger.loads.finish_copy(ctx.name, copy_id=load.copy_id, oid=load.oid, files=files)
        return None

    def final(self, failed: Mapping[int, PenstockError]) -> dict[int, PenstockError]:
        """Return why tables have no copy after all tries: those too that another run has given up meanwhile."""
        ended = {each.oid: each for each in self.ctx.ledger.loads.builds(self.ctx.name, states=["given_up"])}
        lost = {oid: ended[oid] for oid, id_ in self.ids.items() if oid in ended and ended[oid].id == id_}
        given_up = {oid: SourceError("rebuild-given-up", each.reason or "") for oid, each in lost.items()}
        return {oid: _final(self._records[oid], error) for oid, error in failed.items()} | given_up


def _final(record: TableRecord, error: PenstockError) -> PenstockError:
    if error.slug != "table-rewritten":
        return error
    return SourceError(
        "table-rewritten",
        f"expected {record.qualified} to stay as it is while it is copied, but it was changed in each of {TRIES} tries; "
        "run again when that is over",
    )


def _left(ctx: Context, load: LoadRecord) -> PenstockError:
    reason = f"{load.qualified} was dropped, or left the publication, while it was copied"
    table_status.give_up(ctx, load, reason)
    ctx.progress(reason)
    return SourceError("rebuild-given-up", reason)
