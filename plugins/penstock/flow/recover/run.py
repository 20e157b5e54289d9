"""Recovery: where the stream or the lake is broken, say what was lost, leave the slot behind, and copy everything again.

Every step looks at what is there, so it may be killed anywhere and run again: halt, merge what was landed, drop the
slot and begin an era; then the copy is bootstrap's, and one cut gives fresh tables the names of the old ones.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from penstock.errors import LedgerError, PenstockError, SourceError
from penstock.flow import archives, check, guards
from penstock.flow.capture import run as capture
from penstock.flow.check import Finding
from penstock.flow.context import Context
from penstock.flow.guards import slot_work
from penstock.flow.merge import lake_state
from penstock.flow.merge.publish import adopt_half_published
from penstock.ledger.records import CutRecord, PipelineRecord
from penstock.ledger.table_records import TableRecord
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog_snapshot, publication, server_info, session, slot
from penstock.source.server_info import Position, ServerFacts
from penstock.source.slot import SlotFacts
from penstock.units import several

_FIXED = ("slot-lost", "slot-in-use", "slot-unusable", "slot-exists", "publication-missing")
"""What the preflight may find wrong with the old slot and publication: recovery makes new ones."""
_UNREADABLE = "wal-unreadable"
_OF_ONE_TABLE = "no-usable-identity"
"""What the preflight may find wrong with a table of the publication: it is paused, and the others are copied."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Say what a recovery would do, for a person to read; `slug` and `reason` are why, None when it is under way.

    `tables` are those that are copied, by oid; `refusal` is what somebody has to do first: the recovery ends with it.
    """

    slug: str | None
    reason: str | None
    lines: tuple[str, ...]
    tables: Mapping[int, SourceTable] = field(default_factory=dict)
    refusal: SourceError | None = None


def assess(ctx: Context) -> Outlook:
    """Say what is wrong, what was lost and what recovery would do; changes nothing.

    Raises LedgerError("nothing-to-recover" | "not-bootstrapped"), SourceError where the source cannot be asked, or
    answers from another database, LakeError where the lake does not answer.
    """
    ledger = ctx.ledger
    with ledger.session(), ledger.page.panels() as panel:
        record, cut, known = (
            ledger.pipelines.get(ctx.name),
            ledger.merges.last_cut(ctx.name),
            ledger.tables.all(ctx.name),
        )
        (status,), (_, unmerged) = panel.pipelines(ctx.name), panel.window_totals(ctx.name)
        newest = next((each for each in panel.windows(ctx.name) if each["upto_lsn"] == record.position), None)
    if record.era == 1 or record.state != "bootstrapping":
        record.with_slot()  # else there is nothing yet that could be recovered
    with session.connect(ctx.source, what=f"{ctx.name}:recover") as conn:
        server, end = server_info.read_server(conn), server_info.position(conn)
        problem: PenstockError | None = _problem(ctx, conn, record)
        found = slot.read_slot(conn, record.slot)
        published, tables = _to_copy(ctx, conn)
    if server.database != record.database and problem is not None:
        raise problem
    to_copy = {table.oid: table for table in tables}
    if problem is None and record.state != "halted" and record.era > 1 and (cut is None or cut.era < record.era):
        step = "the copy" if record.state == "bootstrapping" else "the first cut"
        return Outlook(None, None, (f"recovery is under way: {_tables(known)}; it continues with {step}",), to_copy)
    problem = problem or lake_state.problem(ctx)
    if (
        problem is None
        and (record.state != "halted" or record.halted_slug == _UNREADABLE)
        and record.position is not None
    ):
        problem = capture.unreadable(ctx, record.with_slot())
    if problem is None and record.state != "halted":
        raise LedgerError(
            "nothing-to-recover",
            f"expected pipeline {record.name} to have lost its place in the stream or the lake's table of cuts, but its slot can be "
            f"read on from {record.position}, and merges can go on; for another trouble see its runbook",
        )
    slug = problem.slug if problem else record.halted_slug or ""
    reason = problem.message if problem else record.halted_reason or ""
    unready, alone = _unready(ctx, published=published)
    refusal = _not_ready(unready) if unready else _not_ours(record, found, server)
    size = sum(leaf.bytes for table in tables for leaf in table.leaves)
    return Outlook(
        slug,
        reason,
        (
            f"broken by [{slug}] {reason}",
            *(() if problem else (_resumable(record, found),)),
            _lost(record, newest["source_time"] if newest else None, server, end),
            _landed(record, status.unmerged_changes, unmerged, problem),
            _remains(record, found, server),
            *([] if published or unready else [f"would run: {_new_publication(ctx, tables)}"]),
            *(f"must be fixed first: {check.line(finding)}" for finding in unready),
            *(f"paused, not copied: {check.line(finding)}" for finding in alone),
            f"then a new slot, and {several(len(tables), 'table')} ({size >> 20} MiB) copied into new tables, "
            + _readable(cut),
        ),
        to_copy,
        refusal,
    )


def start(ctx: Context, *, dry_run: bool) -> bool:
    """Say what recovery would do, and begin it unless this is a dry run; return whether it goes on.

    Raises what `assess` does, LakeError("archive-kept"), and SourceError("preflight-failed" | "slot-exists") for what somebody has to do
    first: a dry run as well, since it says what would become of it.
    """
    outlook = assess(ctx)
    for line in outlook.lines:
        ctx.progress(line)
    if outlook.refusal is not None:
        raise outlook.refusal
    archives.require_none(ctx, ctx.ledger.tables.all(ctx.name), outlook.tables, "a recovery, which makes a copy,")
    if not dry_run:
        begin(ctx, outlook)
    return not dry_run


def begin(ctx: Context, outlook: Outlook) -> None:
    """Halt the pipeline unless it is halted: from here on nothing but this recovery works on it."""
    if outlook.slug is not None and ctx.ledger.pipelines.get(ctx.name).state != "halted":
        ctx.ledger.pipelines.halt(ctx.name, slug=outlook.slug, reason=outlook.reason or "")


def new_era(ctx: Context) -> None:
    """Drop the remains of our slot, see that the publication is there, and leave the era behind; then copy.

    Does nothing unless the pipeline is halted. Raises SourceError: "preflight-failed", "slot-exists" (a slot of the
    name is not ours), "slot-in-use"; LedgerError("work-under-way").
    """
    record = ctx.ledger.pipelines.get(ctx.name)
    if record.state != "halted":
        return
    # raises where the pipeline file has another slot, publication or database by now
    ctx.ledger.pipelines.register(
        ctx.name, database=record.database, slot=ctx.pipeline.slot, publication=ctx.pipeline.publication
    )
    with session.connect(ctx.source, what=f"{ctx.name}:recover") as conn, slot_work(ctx):
        published = publication.read_publication(conn, ctx.pipeline.publication) is not None
        unready, _ = _unready(ctx, published=published)
        if unready:
            raise _not_ready(unready)
        _drop_remains(ctx, conn, record)
        publication.ensure(conn, ctx.pipeline)
        adopt_half_published(ctx)
        capture.sweep(ctx, ctx.ledger.windows.all(ctx.name, state="planned"))
        ctx.ledger.pipelines.begin_era(ctx.name)
    ctx.progress(f"era {record.era} has ended, era {record.era + 1} begins")


def _problem(ctx: Context, conn: session.SourceSession, record: PipelineRecord) -> SourceError | None:
    return None if record.position is None else capture.objection(ctx, conn, record.with_slot())


def _resumable(record: PipelineRecord, found: SlotFacts | None) -> str:
    """Say what a resume would need; it proves the source by itself."""
    behind = None if found is None else found.confirmed
    if record.position is None or behind is None or behind >= record.position:
        return "the slot itself can be read on: where the cause is fixed, resume is enough"
    again = f"the WAL from {behind} to {record.position} again, and continues only where it is what was staged"
    if record.unproved_from is None:
        return f"where the cause is fixed, resume is enough: the slot is behind the ledger, so it reads {again}"
    return (
        f"the source had another history when it was last read: resume reads {again}; as long as this server answers, it will "
        "not be, and recovery is the only way on"
    )


def _to_copy(ctx: Context, conn: session.SourceSession) -> tuple[bool, Sequence[SourceTable]]:
    """Return whether the publication is there, and its tables, or those that it will have when it is created again."""
    found = catalog_snapshot.read_catalog(conn, ctx.pipeline.publication, patterns=ctx.pipeline.tables, sizes=True)
    return found.publication is not None, found.tables if found.publication else found.chosen


def _new_publication(ctx: Context, tables: Sequence[SourceTable]) -> str:
    return publication.create_statement(ctx.pipeline.publication, tables, ctx.pipeline.source.publish)


def _unready(ctx: Context, *, published: bool) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that forbid a recovery, and those that only keep their own table from being copied.

    A publication that has to be made again must not make a table refuse the application's updates.
    """
    failed = [finding for finding in check.failures(check.check(ctx)) if finding.slug not in _FIXED]
    alone = [finding for finding in failed if published and finding.slug == _OF_ONE_TABLE]
    return [finding for finding in failed if finding not in alone], alone


def _not_ready(failed: Sequence[Finding]) -> SourceError:
    return SourceError(
        "preflight-failed",
        "expected the source to be ready for a new slot and copy: " + "; ".join(map(check.line, failed)),
    )


def _drop_remains(ctx: Context, conn: session.SourceSession, record: PipelineRecord) -> None:
    found = slot.read_slot(conn, record.slot)
    if found is None:
        return
    if refusal := _not_ours(record, found, server_info.read_server(conn)):
        raise refusal
    slot.drop(conn, record.slot)
    ctx.progress(f"ran: {slot.drop_statement(record.slot)}")


def _not_ours(record: PipelineRecord, found: SlotFacts | None, server: ServerFacts) -> SourceError | None:
    """Return why a person has to drop what is left of the slot, None where recovery does it, or nothing is left."""
    strange = None if found is None else guards.why_not_ours(record, found, server)
    if strange is None:
        return None
    return SourceError(
        "slot-exists",
        f"expected slot {record.slot} to be ours to drop, but {strange}; if it is not needed, run: "
        f"{slot.drop_statement(record.slot)}; then run recovery again",
    )


def _lost(record: PipelineRecord, since: datetime | None, server: ServerFacts, end: Position) -> str:
    span = f"{record.position} ({_time(since or record.slot_intent_at)}) to {end.flushed} ({_time(end.time)})"
    if (record.system_identifier, record.timeline) != (server.system_identifier, server.timeline):
        return f"lost to the stream: changes from {span}, on another server or timeline: the positions do not compare"
    return f"lost to the stream: changes from {span}, {max(0, end.flushed - (record.position or 0))} bytes of WAL"


def _landed(record: PipelineRecord, changes: int, windows: int, problem: PenstockError | None) -> str:
    if problem is not None and problem.slug in lake_state.SLUGS:
        return "what is landed and not merged comes with the copies"
    if "bootstrapping" in (record.state, record.halted_from) or not windows:
        return "nothing is landed that could be merged first"
    return (
        f"landed and safe: {several(changes, 'change')} in {several(windows, 'window')}, "
        f"merged first into the last cut of era {record.era}"
    )


def _remains(record: PipelineRecord, found: SlotFacts | None, server: ServerFacts) -> str:
    if found is None:
        return f"no slot {record.slot} is left to drop"
    strange = guards.why_not_ours(record, found, server)
    statement = slot.drop_statement(record.slot)
    return f"would run: {statement}" if strange is None else f"you must run: {statement}, for {strange}"


def _readable(cut: CutRecord | None) -> str:
    at = f"at the last cut ({cut.lsn}, {_time(cut.published_at)})" if cut else "as they are"
    return f"which take the names of the old ones in one cut; until then those stay readable {at}"


def _tables(tables: Sequence[TableRecord]) -> str:
    counted = sorted(Counter(table.state for table in tables).items())
    return ", ".join(f"{several(count, 'table')} {state}" for state, count in counted) or "no table copied"


def _time(at: datetime | None) -> str:
    return f"{at:%F %T} UTC" if at else "unknown time"
