"""What a rebuild is asked for, held against what is there, before any work: bad input ends here.

A dry run prints this look line by line. What a replay needs in addition is in `replay_request.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.errors import LedgerError, PenstockError, SourceError
from penstock.flow import archives
from penstock.flow.context import Context
from penstock.flow.guards import require_named, require_running
from penstock.flow.load import fetch, waiting
from penstock.flow.load.blockers import why_no_copy
from penstock.flow.load.copy import published
from penstock.flow.schema.names import table_facts
from penstock.ledger.table_records import LoadCause, LoadRecord, TableRecord
from penstock.shapes.table_facts import TableFacts
from penstock.source.catalog_snapshot import CatalogSnapshot


def resync_lines(ctx: Context, tables: Sequence[str] | None, *, woken: bool = False) -> list[str]:
    """Say what a resync would do; changes nothing, and raises what the resync would raise before its work."""
    records = to_copy(ctx, tables, woken=woken)
    if not records:
        return ["no table waits for a copy: nothing to do"]
    open_ = open_rebuilds(ctx, [record.oid for record in records], "resync")
    found = published(ctx, sizes=True)
    if tables is not None:
        _require_copies(ctx, [record for record in records if record.oid not in open_], found)
    fetched = {record.oid for record in fetch.candidates(ctx, records)} if tables is None else set()
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
    blocker = archives.refusal(ctx, record, now) or why_no_copy(now, found.publication, joining=record.state == "new")
    return f"not copied: {blocker}" if blocker else copied


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


def present_facts(ctx: Context, records: Sequence[TableRecord]) -> dict[int, TableFacts]:
    """Return what the source says of these tables now; raises SourceError("table-unpublished"), or why one is not to be copied."""
    found = published(ctx)
    _require_copies(ctx, records, found)
    return {record.oid: table_facts(ctx, found.by_oid[record.oid]) for record in records}


def _require_copies(ctx: Context, records: Sequence[TableRecord], found: CatalogSnapshot) -> None:
    """See that a copy makes each of these tables right, and loses nothing; raises why it would not."""
    _require_published(ctx, records, found.by_oid)
    archives.require_none(ctx, records, found.by_oid, "a copy")
    for record in records:
        if blocker := why_no_copy(found.by_oid[record.oid], found.publication, joining=record.state == "new"):
            raise blocker


def fit_to_copy(ctx: Context, records: Sequence[TableRecord]) -> list[TableRecord]:
    """Return the tables that a copy makes right, and note once why it would not for the others.

    What has left the publication again is left out: the next capture notes it.
    """
    if not records:
        return []
    found = published(ctx)
    now, fit = found.by_oid, []
    for record in archives.spared(ctx, records, now):
        if record.oid not in now:
            ctx.progress(f"{record.qualified} is not in the publication any more: not copied")
            continue
        blocker = why_no_copy(now[record.oid], found.publication, joining=record.state == "new")
        if blocker is None:
            fit.append(record)
        else:
            _note(ctx, record, blocker)
    return fit


def _note(ctx: Context, record: TableRecord, blocker: PenstockError) -> None:
    reported = ctx.ledger.events.add_on_change(
        ctx.name, slug=blocker.slug, level="warning", message=blocker.message, table_oid=record.oid
    )
    if reported:
        ctx.progress(str(blocker))


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


def _require_published(ctx: Context, records: Sequence[TableRecord], now: Mapping[int, object]) -> None:
    for record in records:
        if record.oid not in now:
            raise SourceError(
                "table-unpublished",
                f"expected {record.schema}.{record.name} in publication {ctx.pipeline.publication}, but it was dropped "
                "or left it; add it to the publication again, then resync it",
            )


def not_ready(record: TableRecord, need: str, step: str) -> LedgerError:
    """Make the error of a table that is in another state than a rebuild needs."""
    return LedgerError(
        "table-not-ready", f"expected {record.schema}.{record.name} {need}, but it is {record.state}; {step}"
    )
