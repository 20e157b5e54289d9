"""Status: where a pipeline stands, from the ledger and, when it answers, from the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import SourceError
from penstock.flow.context import Context
from penstock.flow.copy import added_tables
from penstock.ledger.maintenance import MaintenanceRecord
from penstock.ledger.records import GapRecord, KeptSparkRecord
from penstock.ledger.status_record import StatusRecord
from penstock.ledger.table_records import RebuildRecord, TableRecord
from penstock.ledger.verifications import VerifiedTable
from penstock.quantities import several, size
from penstock.source import server_info, session, slot


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Say what the slot keeps on the source: bytes not read yet, and bytes of WAL that cannot be freed."""

    unread: int
    retained: int
    wal_status: str | None
    active: bool


@dataclass(frozen=True, slots=True)
class Status:
    """Hold both sides; `source` is None, with the reason, when the source cannot be asked."""

    ledger: StatusRecord
    verified: Sequence[VerifiedTable]
    source: SourceStatus | None
    source_problem: str | None
    maintenance: MaintenanceRecord | None = None
    answered: frozenset[str] = frozenset()
    """The reasons of a pause that the pipeline answers with a copy by itself."""


def status(ctx: Context) -> Status:
    """Read where the pipeline stands; raises LedgerError when the ledger cannot be asked."""
    known, verified = ctx.ledger.events.status(ctx.name), ctx.ledger.verifications.tables(ctx.name)
    maintenance = next(iter(ctx.ledger.maintenance.all(ctx.name)), None)
    answered = added_tables.answered(ctx)
    try:
        return Status(known, verified, _source(ctx), None, maintenance, answered)
    except SourceError as error:
        return Status(known, verified, None, str(error), maintenance, answered)


def _source(ctx: Context) -> SourceStatus:
    with session.connect(ctx.source, what=f"{ctx.name}:status") as conn:
        state = slot.read(conn, ctx.pipeline.slot)
        if state is None:
            raise SourceError("slot-missing", f"the server has no slot {ctx.pipeline.slot}")
        flushed = server_info.flushed(conn)
    return SourceStatus(
        unread=max(0, flushed - (state.confirmed or flushed)),
        retained=max(0, flushed - (state.restart or flushed)),
        wal_status=state.wal_status,
        active=state.active,
    )


def lines(found: Status) -> list[tuple[str, str]]:
    """Return the status as labelled lines, the urgent ones first."""
    known, pipeline = found.ledger, found.ledger.pipeline
    halted = [("halted", f"[{pipeline.halted_slug}] {pipeline.halted_reason}")] if pipeline.halted_slug else []
    paused = [(f"paused {t.qualified}", _paused_line(t, found.answered)) for t in known.paused]
    waiting = [(f"waiting {t.qualified}", f"for its copy, since {t.joined_lsn}") for t in known.waiting]
    return [
        *halted,
        *paused,
        *waiting,
        ("source", found.source_problem or _source_line(found.source)),
        ("landed through", f"{pipeline.position}, era {pipeline.era}"),
        ("windows", _counts(known.windows)),
        ("not merged yet", f"{several(known.unmerged_rows, 'change')} in {several(known.unmerged_windows, 'window')}"),
        ("tables", _counts(known.tables)),
        *((f"{each.kind} {each.qualified}", _rebuild_line(each)) for each in known.rebuilds),
        ("last cut", f"{known.last_cut.lsn} at {known.last_cut.published_at:%F %T} UTC" if known.last_cut else "none"),
        *kept_lines(known.kept_spark),
        ("maintained", _maintained(found.maintenance)),
        *verified_lines(found.verified),
        *conflict_lines(found.verified),
        *((f"gap after era {gap.era}", _gap_line(gap)) for gap in known.gaps),
        *((f"event {event.at:%F %T}", f"[{event.slug}] {event.message}") for event in known.events),
    ]


def kept_lines(kept: KeptSparkRecord | None) -> Iterator[tuple[str, str]]:
    """Say until when a merge keeps its Spark application, where one does."""
    if kept is not None:
        yield "spark", f"application is kept until {kept.until:%H:%M} UTC, {several(kept.cuts, 'cut')} so far"


def verified_lines(tables: Sequence[VerifiedTable]) -> Iterator[tuple[str, str]]:
    """Say which tables differ, and through where the others are verified: the oldest, and how many were never."""
    for table in tables:
        if table.differs:
            found = f"{table.missing} missing, {table.extra} extra, {table.different} different"
            yield f"differs {table.schema}.{table.name}", f"[verify-differs] at {table.differing_lsn}: {found}"
    done = sorted((table.verified_through, table.verified_at) for table in tables if table.verified_through)
    if done:
        lsn, at = done[0]
        yield (
            "verified through",
            f"{lsn} or later at {at:%F %T} UTC or later: {len(done)} of {several(len(tables), 'table')}",
        )
    elif tables:
        yield "verified through", f"none of {several(len(tables), 'table')} yet"


def conflict_lines(tables: Sequence[VerifiedTable]) -> Iterator[tuple[str, str]]:
    """Say what the merges of tables have met besides rows since their copy."""
    for table in tables:
        name = f"{table.schema}.{table.name}"
        if table.conflicts:
            slug = "[divergence-suspected] " if table.suspected else ""
            found = ", ".join(f"{kind} {count}" for kind, count in table.conflicts.items())
            yield f"conflicts {name}", f"{slug}{found}, the newest at {table.conflict_lsn}"
        if table.misfits:
            yield (
                f"misfits {name}",
                f"{several(table.misfits, 'value')} written since its copy did not fit; those of rows still there are in _misfits",
            )


def _source_line(source: SourceStatus | None) -> str:
    if source is None:
        return "unknown"
    return f"{size(source.unread)} unread, {size(source.retained)} of WAL retained, slot {source.wal_status}"


def _paused_line(table: TableRecord, answered: frozenset[str]) -> str:
    """Say why a table is paused, and what follows."""
    step = "resync copies it again by itself" if table.paused_slug in answered else "resync it, or resume it"
    return f"[{table.paused_slug}] {table.paused_reason}; {step} (docs/runbooks/{table.paused_slug}.md)"


def _rebuild_line(rebuild: RebuildRecord) -> str:
    """Say how far a table is that is being rebuilt."""
    through = (
        f"built through {rebuild.through_lsn}, {several(rebuild.rows, 'row')}"
        if rebuild.through_lsn
        else "nothing built yet"
    )
    goal = f" of {rebuild.goal_lsn}" if rebuild.goal_lsn else ""
    return f"{rebuild.state} since {rebuild.started_at:%F %T} UTC, {through}{goal}; last step {rebuild.changed_at:%F %T} UTC"


def _maintained(run: MaintenanceRecord | None) -> str:
    if run is None:
        return "never"
    if run.error is not None:
        return f"begun at {run.started_at:%F %T} UTC and ended by [{run.error}] (docs/runbooks/{run.error}.md)"
    if run.report is None or run.ended_at is None:
        return f"begun at {run.started_at:%F %T} UTC, without an end: it is at work, or was killed"
    tables = [table for table in run.report["lake"]["tables"] if table["before"] and table["after"]]
    figures = (
        f"{what} {sum(table['before'][key] for table in tables)} -> {sum(table['after'][key] for table in tables)}"
        for what, key in (("files", "files"), ("delete files", "delete_files"), ("snapshots", "snapshots"))
    )
    return f"{run.ended_at:%F %T} UTC{', only looked' if run.dry_run else ''}: {', '.join(figures)}"


def _gap_line(gap: GapRecord) -> str:
    """Say which changes are in no window, and why."""
    since, until = (f"{at:%F %T} UTC" if at else "unknown" for at in (gap.from_time, gap.upto_time))
    return f"[{gap.reason}] from {gap.from_lsn} ({since}) to {gap.upto_lsn or 'the next slot'} ({until})"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none"
