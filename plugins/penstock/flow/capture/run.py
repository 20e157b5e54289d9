"""Capture: take the slot's changes into the landing zone, one window of WAL after another.

A window is planned in the ledger, peeked, staged and only then confirmed to the slot; killed between any two
of these steps, the next run finds the ledger as the truth and repeats or continues. Lake and merge play no part.
Each capture opens its own connections and holds the pipeline's lock for its windows only. A run of the schedule costs a process and a
capture of few changes does not, so one run may capture again and again; between two of them nothing is held.

Other wings and rooms import from this module only, and from `skip_transaction`.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from croniter import croniter

from penstock.errors import SourceError
from penstock.flow import landing_mark
from penstock.flow.capture import next_window, slot_check
from penstock.flow.capture.history_proof import heal, objection, unreadable
from penstock.flow.capture.next_window import NextWindow
from penstock.flow.capture.report import CaptureReport, WindowReport
from penstock.flow.capture.slot_check import SourceState
from penstock.flow.capture.window import Written, plan_window, request_of, sweep, write_window
from penstock.flow.changelog import late_changes
from penstock.flow.context import Context
from penstock.flow.guards import running, slot_work
from penstock.flow.schema import resolve
from penstock.flow.schema import run as schema
from penstock.flow.schema.membership import follow_options, follow_publication
from penstock.flow.schema.publication import follow_patterns
from penstock.ledger.records import ActivePipeline, WindowRecord
from penstock.ledger.windows import WindowContent, WindowPace, moved
from penstock.lsn import Lsn
from penstock.source import catalog_snapshot, ddl_trigger, publication, server_info, session, slot
from penstock.source.ddl_trigger import DdlTrigger
from penstock.source.peek import Logical

__all__ = [
    "CaptureReport",
    "capture",
    "capture_repeatedly",
    "capture_window",
    "heal",
    "objection",
    "sweep",
    "unreadable",
]
_RECENT = 8
"""So many windows say how large the next one may be."""
_WORTH = 1 / 8
"""A window with less than this part of the WAL that it may take is not read ahead.

One that was ends where the WAL ended before: under steady writes there would always be another, and the run had no end.
"""


def capture(ctx: Context, *, patterns: bool = True) -> CaptureReport:
    """Capture windows until the slot is caught up or the time budget ends; with `patterns` the publication follows them first."""
    deadline = time.monotonic() + ctx.pipeline.capture.time_budget
    with closing(NextWindow(ctx, deadline)) as following:
        windows = [capture_window(ctx, patterns=patterns, following=following)]
        while windows[-1].behind and time.monotonic() < deadline:
            windows.append(capture_window(ctx, following=following))
    return CaptureReport(tuple(windows))


def capture_repeatedly(
    ctx: Context,
    *,
    why_end: Callable[[], str | None] = lambda: None,
    landed: Callable[[CaptureReport], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> CaptureReport:
    """Capture every `capture.every` until the time budget ends or the schedule's next run begins; once without it.

    `why_end` may end it before a further capture by a reason; `landed` hears of each capture with changes that is followed by
    a further one. Raises what `capture` raises.
    """
    every, windows = ctx.pipeline.capture.every, list[WindowReport]()
    end = time.monotonic() + _seconds_left(ctx, datetime.now(UTC))
    while True:
        begun = time.monotonic()
        report = capture(ctx, patterns=not windows)
        windows += report.windows
        if every is None or begun + every >= end:
            break
        if report.changes and landed is not None:
            landed(report)
        sleep(max(0.0, begun + every - time.monotonic()))
        if (reason := why_end()) is not None:
            ctx.progress(f"ending the captures of this run: {reason}")
            break
    return CaptureReport(tuple(windows))


def _seconds_left(ctx: Context, now: datetime) -> float:
    """Return how long this run may take further captures: until its budget ends, or the schedule wants the next run."""
    settings = ctx.pipeline.capture
    if settings.schedule is None:
        return settings.time_budget
    following: datetime = croniter(settings.schedule, now).get_next(datetime)
    return min(settings.time_budget, (following - now).total_seconds())


def capture_window(
    ctx: Context, *, patterns: bool = False, limit: Lsn | None = None, following: NextWindow | None = None
) -> WindowReport:
    """Capture one window, to `limit` at most, on fresh connections, holding the pipeline's lock.

    With `patterns` the publication follows them first. `following` may have read this window, and reads the next one.
    """
    started = time.monotonic()
    timeout = ctx.pipeline.capture.statement_timeout
    with (
        session.connect(ctx.source, what=f"{ctx.name}:capture", statement_timeout=timeout) as conn,
        slot_work(ctx),
    ):
        with ctx.ledger.session():
            due = _prepare(ctx, conn, patterns=patterns, limit=limit, ahead=following.end if following else None)
        written = None
        if due.window is not None:
            request = request_of(ctx, due.known, due.window.upto_lsn, due.logical)
            if following:
                following.plan(conn, due.window.upto_lsn, replace(request, upto=due.following))
            written = write_window(ctx, due.window, request, following, xid_horizon=due.end.xid_horizon)
            with ctx.ledger.session():
                _stage(ctx, conn, due, due.window, written)
        confirmed = slot.advance(conn, due.known.slot, due.upto)
        if written is not None:
            ctx.ledger.windows.confirm(ctx.name, through=Lsn(min(confirmed, due.upto)))
    seconds, landed = time.monotonic() - started, written.landed if written else None
    report = WindowReport.of(
        due.known.position, due.upto, landed, seconds, due.end, ahead=bool(written and written.ahead)
    )
    ctx.progress(report.line())
    return report


@dataclass(frozen=True, slots=True)
class _Due:
    """Hold what a look at ledger and source has found, and the window that is planned, None where there is no new WAL."""

    known: ActivePipeline
    before: SourceState
    end: server_info.Position
    look: schema.Look
    window: WindowRecord | None
    following: Lsn
    """Where the window after this one could end by now; where this one ends if it had too little to be read ahead."""
    trigger: DdlTrigger | None
    """The source's event trigger as it was before the look, None where the pipeline does not ask for it."""

    @property
    def upto(self) -> Lsn:
        """Return where the window ends, which is where it begins where there is none."""
        return self.known.position if self.window is None else self.window.upto_lsn

    @property
    def logical(self) -> Logical:
        """Return which logical messages to read: the event trigger's, while it is there to prove them."""
        return Logical.PROVED if self.trigger and self.trigger.token else Logical.UNSENT


def _prepare(
    ctx: Context, conn: session.SourceSession, *, patterns: bool, limit: Lsn | None, ahead: Lsn | None
) -> _Due:
    """Hold ledger and source against each other, let them follow each other, and plan the window, to `ahead` where that is read."""
    record = running(ctx)
    landing_mark.require(ctx, record)
    end = server_info.position(conn)
    # after the position: so the catalog knows every column that the window can bring
    stamps = ctx.ledger.tables.looked(ctx.name, schema.WATCHED)
    chosen = ctx.pipeline.tables if patterns else None
    trigger = ddl_trigger.read_trigger(conn) if ctx.pipeline.source.ddl_trigger else None
    found = catalog_snapshot.read_catalog(conn, record.publication, patterns=chosen, known=stamps)
    before = slot_check.read_rest(conn, record, found.publication, end.flushed)
    heal(ctx, conn, record, before)
    if end.seen is not None:
        ctx.ledger.changelogs.note_source_clock(ctx.name, at=end.seen, lsn=end.flushed, looked_at=end.time)
    if follow_patterns(ctx, conn, found, on_standby=before.server.in_recovery):
        found = catalog_snapshot.read_catalog(conn, record.publication, known=stamps)
        slot_check.same_publication(record, found.publication.oid if found.publication else None)
    known = ctx.ledger.windows.snapshot(ctx.name, but=found.unchanged)
    if follow_options(ctx, conn, found.publication, known.pipeline.publishing, found.tables):
        known = ctx.ledger.windows.snapshot(ctx.name, but=found.unchanged)
    if follow_publication(ctx, conn, found, known, position=record.position):
        known = ctx.ledger.windows.snapshot(ctx.name, but=found.unchanged)
    look = schema.follow(ctx, conn, found, known, None if trigger is None else trigger.token or "")
    recent = ctx.ledger.windows.recent(ctx.name, _RECENT)
    reach = ahead or _reach(ctx, recent, record.position, before)
    upto = Lsn(min(end.flushed, reach, limit or end.flushed))
    window = plan_window(ctx, record, end, upto, before) if upto > record.position else None
    after = window.upto_lsn if window else upto
    reach = _reach(ctx, recent, after, before)
    following = min(end.flushed, reach) if end.flushed - after >= (reach - after) * _WORTH else after
    return _Due(record, before, end, look, window, Lsn(following), trigger)


def _reach(ctx: Context, recent: Sequence[WindowPace], position: Lsn, before: SourceState) -> int:
    """Return how far a window from a position on may reach for its time and its ceiling."""
    settings = ctx.pipeline.capture
    reread = 0 if before.restart is None else max(0, position - before.restart)
    return position + next_window.window_bytes(
        recent, reread=reread, ceiling=settings.max_wal_bytes, seconds=settings.window_seconds
    )


def _judge_again(ctx: Context, conn: session.SourceSession, due: _Due) -> None:
    """Judge everything again between peek and staging: what another session did meanwhile may have cost us changes."""
    pipeline = running(ctx)
    if pipeline.position != due.known.position:  # another run, because this one has lost the lock
        raise moved(ctx.name, due.known.position, pipeline.position)
    published = publication.read_publication(conn, due.known.publication)
    now = slot_check.read_rest(conn, due.known, published, server_info.flushed(conn))
    slot_check.judge_again(due.known, due.before, now)
    follow_options(ctx, conn, published, pipeline.publishing)
    if due.logical is Logical.PROVED and ddl_trigger.read_trigger(conn) != due.trigger:
        raise SourceError(
            "source-error",
            f"expected the event trigger at {conn.place} to stay as it was while a window was read, got another one, which "
            "proves other messages; nothing of the window was staged: capture again",
        )


def _stage(ctx: Context, conn: session.SourceSession, due: _Due, window: WindowRecord, written: Written) -> None:
    """Stage what was written; from the end of this function the window exists."""
    landed = written.landed
    _judge_again(ctx, conn, due)
    mappings = resolve.resolve_questions(ctx, conn, due.look, landed, window)
    staged = ctx.ledger.windows.stage(
        ctx.name,
        from_lsn=window.from_lsn,
        attempt=window.attempt,
        content=WindowContent(
            landed.files,
            landed.relations,
            landed.totals.transactions,
            landed.totals.messages,
            mappings=mappings,
            logged=resolve.logged_last(landed),
            missed=landed.ddl is None or landed.ddl.gaps > 0,
        ),
        digest=written.digest,
        seconds=time.monotonic() - written.started,
    )
    late_changes.report_late_changes(ctx, staged)
