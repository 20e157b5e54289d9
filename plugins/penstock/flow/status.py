"""Status: where a pipeline stands, from the ledger as of one moment and, when it answers, from the source."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from penstock.codec import fields_of
from penstock.conditions import runbook
from penstock.config.model import Pipeline
from penstock.errors import SourceError
from penstock.flow.context import Context
from penstock.flow.health.input import HealthInput
from penstock.flow.health.rules_lake import stale
from penstock.flow.load import waiting
from penstock.ledger.events import EventRecord
from penstock.ledger.health import AlarmRecord
from penstock.ledger.maintenance import MaintenanceRecord
from penstock.ledger.page import PipelineStatus
from penstock.ledger.records import CutRecord, GapRecord, PipelineRecord
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.ledger.verifications import VerifiedTable
from penstock.ledger.work import WorkNote
from penstock.source import server_info, session, slot
from penstock.units import sentence, several, size, span

_EVENTS = 10


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Say what the slot keeps on the source, not read yet and of WAL that cannot be freed; `at` is its clock."""

    unread_bytes: int
    retained_bytes: int
    wal_status: str | None
    slot_active: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Freshness:
    """Say up to which time of the source the lake has every change, how old that is, and the limit that this has reached."""

    as_of: datetime | None
    seconds: float | None = None
    limit_reached_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """Hold both sides; `source` is None, with the reason, when the source cannot be asked.

    The unmerged windows end after the last cut, also those without changes. `copied_again` are the paused tables that get the copy which
    they need without a person.
    """

    pipeline: PipelineRecord
    state: PipelineStatus
    windows: Mapping[str, int]
    unmerged_windows: int
    tables: Sequence[TableRecord]
    rebuilds: Sequence[LoadRecord]
    last_cut: CutRecord | None
    gaps: Sequence[GapRecord]
    events: Sequence[EventRecord]
    verified: Sequence[VerifiedTable]
    alarms: Sequence[AlarmRecord]
    work: Sequence[WorkNote]
    maintenance: MaintenanceRecord | None
    copied_again: Sequence[TableRecord]
    freshness: Freshness = Freshness(None)
    source: SourceStatus | None = None
    source_problem: str | None = None

    @property
    def paused(self) -> list[TableRecord]:
        """Return the tables that are paused."""
        return [table for table in self.tables if table.state == "paused"]

    @property
    def waiting(self) -> list[TableRecord]:
        """Return the tables that joined and wait for their copy."""
        return [table for table in self.tables if table.waits]

    @property
    def tables_by_state(self) -> Counter[str]:
        """Count the tables by their state."""
        return Counter(table.state for table in self.tables)

    @property
    def under_way(self) -> list[WorkNote]:
        """Return how far work with a known end is."""
        return [note for note in self.work if note.until is None]

    @property
    def waits_for_a_person(self) -> bool:
        """Return whether the pipeline is halted, or a table stays paused until somebody decides."""
        asked = any(table not in self.copied_again for table in self.paused)
        return self.pipeline.halted_slug is not None or asked

    @property
    def is_well(self) -> bool:
        """Return whether nothing is open, late, paused or out of reach."""
        wrong = self.alarms, self.paused, self.freshness.limit_reached_seconds, self.source_problem
        return not any(wrong) and not any(table.differs for table in self.verified)


def status(ctx: Context) -> Status:
    """Read where the pipeline stands; raises LedgerError when the ledger cannot be asked, or does not know it."""
    name, ledger = ctx.name, ctx.ledger
    with ledger.session(), ledger.page.panels() as panel:
        record = ledger.pipelines.get(name)
        windows, unmerged = panel.window_totals(name)
        (state,), tables = panel.pipelines(name), ledger.tables.all(name)
        found = Status(
            record,
            state,
            windows,
            unmerged,
            tables=tables,
            rebuilds=ledger.loads.builds(name),
            last_cut=ledger.merges.last_cut(name),
            gaps=ledger.pipelines.gaps(name),
            events=ledger.events.all(name, limit=_EVENTS),
            verified=ledger.verifications.tables(name),
            alarms=[alarm for alarm in ledger.health.alarms(name) if alarm.closed_at is None],
            work=[note for note in panel.work(name) if note.fresh],
            maintenance=next(iter(panel.maintenances(name)), None),
            copied_again=[table for table in waiting.due(ctx, tables) if table.state == "paused"],
        )
    if record.position is not None and record.state != "torn_down":
        try:
            found = replace(found, source=_source(ctx))
        except SourceError as error:
            found = replace(found, source_problem=str(error))
    at = found.source.at if found.source else datetime.now(UTC)
    return replace(found, freshness=_freshness(ctx.pipeline, state, at))


def _freshness(pipeline: Pipeline, lake: PipelineStatus, at: datetime) -> Freshness:
    if lake.as_of is None:
        return Freshness(None)
    found = next(stale(HealthInput(pipeline=pipeline, at=at, lake=lake)), None)
    seconds = max((at - lake.as_of).total_seconds(), 0.0)
    return Freshness(lake.as_of, seconds, found.numbers["limit_seconds"] if found else None)


def _source(ctx: Context) -> SourceStatus:
    with session.connect(ctx.source, what=f"{ctx.name}:status") as conn:
        seen = slot.read_slot(conn, ctx.pipeline.slot)
        if seen is None:
            raise SourceError("slot-missing", f"the server has no slot {ctx.pipeline.slot}")
        at = server_info.position(conn).time
    return SourceStatus(max(0, seen.unread or 0), max(0, seen.retained or 0), seen.wal_status, seen.active, at)


def plain(found: Status) -> dict[str, Any]:
    """Return what `lines` says as data for other tools."""
    pipeline, cut = found.pipeline, found.last_cut
    return {
        "state": pipeline.state,
        "halted": {"slug": pipeline.halted_slug, "reason": pipeline.halted_reason} if pipeline.halted_slug else None,
        "alarms": [fields_of(each, "slug subject level message opened_at") for each in found.alarms],
        "freshness": found.freshness,
        "work": [fields_of(each, "dag task what share rows rows_per_second left_seconds") for each in found.under_way],
        "era": pipeline.era,
        "landed_through": pipeline.position,
        "source": found.source and fields_of(found.source, "unread_bytes retained_bytes wal_status slot_active"),
        "source_problem": found.source_problem,
        "windows": found.windows,
        "unmerged": {"windows": found.unmerged_windows, "changes": found.state.unmerged_changes},
        "tables": dict(sorted(found.tables_by_state.items())),
        "paused": [
            {"table": each.qualified, "slug": each.paused_slug, "reason": each.paused_reason} for each in found.paused
        ],
        "waiting": [each.qualified for each in found.waiting],
        "rebuilds": [
            {"table": each.qualified, "kind": each.cause, "state": each.state, "rows": each.built_rows}
            | {"through": each.through_lsn, "goal": each.goal_lsn}
            for each in found.rebuilds
        ],
        "last_cut": cut and fields_of(cut, "lsn published_at"),
        "verified": [
            {"table": f"{each.schema}.{each.name}", "through": each.verified_through, "at": each.verified_at}
            | {"differs": each.differs}
            for each in found.verified
        ],
        "events": [fields_of(each, "at slug level message") for each in found.events],
    }


def lines(found: Status) -> list[tuple[str, str]]:
    """Return the status as labelled lines: open alarms and freshness, then what stands still or is under way, then the rest."""
    pipeline = found.pipeline
    halted = (
        [("halted", sentence(f"[{pipeline.halted_slug}] {pipeline.halted_reason}"))] if pipeline.halted_slug else []
    )
    paused = [(f"paused {t.qualified}", _paused_line(t, found.copied_again)) for t in found.paused]
    waiting = [(f"waiting {t.qualified}", f"for its copy, since {t.joined_lsn}") for t in found.waiting]
    return [
        *((f"{alarm.level} {alarm.slug}", _alarm_line(alarm)) for alarm in found.alarms),
        ("freshness", _freshness_line(found)),
        *halted,
        *paused,
        *waiting,
        *_phase(found),
        *(("under way", _work(note)) for note in found.under_way),
        ("source", found.source_problem or _source_line(found.source, pipeline)),
        ("landed through", f"{pipeline.position}, era {pipeline.era}" if pipeline.position else "nothing yet"),
        ("windows", _counts(found.windows)),
        (
            "not merged yet",
            f"{several(found.state.unmerged_changes, 'change')} in {several(found.unmerged_windows, 'window')}",
        ),
        ("tables", _counts(found.tables_by_state)),
        *((f"{each.cause} {each.qualified}", _rebuild_line(each)) for each in found.rebuilds),
        ("last cut", f"{found.last_cut.lsn} at {found.last_cut.published_at:%F %T} UTC" if found.last_cut else "none"),
        *_kept(found.work),
        ("maintained", _maintained(found.maintenance)),
        *verified_lines(found.verified),
        *conflict_lines(found.verified),
        *((f"gap after era {gap.era}", _gap_line(gap)) for gap in found.gaps),
        *((f"event {event.at:%F %T}", sentence(f"[{event.slug}] {event.message}")) for event in found.events),
    ]


def _alarm_line(alarm: AlarmRecord) -> str:
    return f"{alarm.subject}: {sentence(alarm.message)} Open since {alarm.opened_at:%F %T} UTC ({runbook(alarm.slug)})."


def _freshness_line(found: Status) -> str:
    fresh, cut = found.freshness, found.last_cut
    if fresh.as_of is None:
        return "there is no cut yet" if cut is None else "there is no cut since the slot was made anew"
    said = f"readers see the source as it was {span(fresh.seconds)} ago, at {fresh.as_of:%F %T} UTC"
    limit = fresh.limit_reached_seconds
    return said if limit is None else f"{said}; the limit is {span(limit)} (docs/runbooks/lake-stale.md)"


def _phase(found: Status) -> Iterator[tuple[str, str]]:
    """Say how far a first copy is, until its cut is there."""
    pipeline, tables = found.pipeline, found.tables_by_state
    if found.last_cut is not None and found.last_cut.era == pipeline.era:
        return
    if pipeline.state in ("new", "bootstrapping") and pipeline.position is None:
        yield "phase", "makes the slot, which waits for transactions that are open at the source"
    elif pipeline.state in ("bootstrapping", "running"):
        missing = tables["new"] + tables["copying"]
        copied = f"{tables['copied']} of {several(tables['copied'] + missing, 'table')} copied"
        yield "phase", f"copies the tables: {copied}" if missing else f"loads the copies into the lake: {copied}"


def _work(note: WorkNote) -> str:
    """Say how far a work is, how fast, and how long it still takes."""
    parts = (
        None if note.share is None else f"{note.share:.0%}",
        None if note.rows is None else several(note.rows, "row"),
        None if note.rows_per_second is None else f"{note.rows_per_second:,.0f} rows/s",
        None if note.left_seconds is None else f"{span(note.left_seconds)} left",
    )
    return f"{note.what}: {', '.join(part for part in parts if part)} ({note.dag}, task {note.task})"


def _kept(work: Sequence[WorkNote]) -> Iterator[tuple[str, str]]:
    """Say until when a merge keeps its Spark application, where one does."""
    for kept in work:
        if kept.until is not None:
            yield "spark", f"application is kept until {kept.until:%H:%M} UTC, {several(kept.done, 'cut')} so far"


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


def _source_line(source: SourceStatus | None, pipeline: PipelineRecord) -> str:
    if source is None:
        return f"there is no slot {'any more' if pipeline.state == 'torn_down' else 'yet'}"
    return (
        f"{size(source.unread_bytes)} unread, {size(source.retained_bytes)} of WAL retained, slot {source.wal_status}"
    )


def _paused_line(table: TableRecord, copied_again: Sequence[TableRecord]) -> str:
    """Say why a table is paused, and what follows."""
    step = "Resync copies it again by itself" if table in copied_again else "Resync it, or resume it"
    return f"{sentence(f'[{table.paused_slug}] {table.paused_reason}')} {step} (docs/runbooks/{table.paused_slug}.md)."


def _rebuild_line(rebuild: LoadRecord) -> str:
    """Say how far a table is that is being rebuilt."""
    through = (
        f"built through {rebuild.through_lsn}, {several(rebuild.built_rows, 'row')}"
        if rebuild.through_lsn
        else "nothing built yet"
    )
    goal = f" of {rebuild.goal_lsn}" if rebuild.goal_lsn else ""
    return f"{rebuild.state} since {rebuild.started_at:%F %T} UTC, {through}{goal}; last step {rebuild.changed_at:%F %T} UTC"


def _maintained(run: MaintenanceRecord | None) -> str:
    if run is None:
        return "never"
    if run.error is not None:
        return f"begun at {run.started_at:%F %T} UTC and ended by [{run.error}] ({runbook(run.error)})"
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
