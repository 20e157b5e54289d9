"""Capture: take the slot's changes into the landing zone, one window of WAL after another.

A window is planned in the ledger, peeked, staged and only then confirmed to the slot; killed between any two
of these steps, the next run finds the ledger as the truth and repeats or continues. Lake and merge play no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from time import monotonic

from penstock.errors import SourceError
from penstock.flow import landing_mark
from penstock.flow.capture import slot_verdict, source_state, window_proof, window_size
from penstock.flow.capture.land_window import land, messages
from penstock.flow.capture.next_window import NextWindow
from penstock.flow.capture.reports import CaptureReport, WindowReport
from penstock.flow.capture.slot_verdict import SourceState
from penstock.flow.changelog import late_changes
from penstock.flow.context import Context
from penstock.flow.expected_state import ExpectedState
from penstock.flow.guards import running, slot_work
from penstock.flow.schema import evidence
from penstock.flow.schema import run as schema
from penstock.flow.schema.publication_options import follow_options
from penstock.flow.schema.sync_publication import follow_patterns
from penstock.flow.schema.sync_tables import follow_publication
from penstock.landing import layout
from penstock.ledger import new_attempt
from penstock.ledger.records import WindowRecord
from penstock.ledger.windows import moved
from penstock.lsn import Lsn
from penstock.shapes.landed_window import Landed
from penstock.source import catalog_snapshot, ddl_trigger, publication, server_info, session, slot
from penstock.source.ddl_trigger import DdlTrigger
from penstock.source.peek import Logical
from penstock.wire.columnar import ColumnarDecoder
from penstock.wire.digest import StreamDigest

_RECENT = 8
"""So many windows say how large the next one may be."""
_WORTH = 1 / 8
"""A window with less than this part of the WAL that it may take is not read ahead.

One that was ends where the WAL ended before: under steady writes there would always be another, and the run had no end.
"""


def capture(ctx: Context, *, patterns: bool = True) -> CaptureReport:
    """Capture windows until the slot is caught up or the time budget ends; with `patterns` the publication follows them first."""
    deadline = monotonic() + ctx.pipeline.capture.time_budget
    with closing(NextWindow(ctx, deadline)) as following:
        windows = [capture_window(ctx, patterns=patterns, following=following)]
        while windows[-1].behind and monotonic() < deadline:
            windows.append(capture_window(ctx, following=following))
    return CaptureReport(tuple(windows))


def capture_window(
    ctx: Context, *, patterns: bool = False, limit: Lsn | None = None, following: NextWindow | None = None
) -> WindowReport:
    """Capture one window, to `limit` at most, on fresh connections, holding the pipeline's lock.

    With `patterns` the publication follows them first. `following` may have read this window, and reads the next one.
    """
    started = monotonic()
    timeout = ctx.pipeline.capture.statement_timeout
    with (
        session.connect(ctx.source, what=f"{ctx.name}:capture", statement_timeout=timeout) as conn,
        slot_work(ctx),
    ):
        with ctx.ledger.session():
            due = _look(ctx, conn, patterns=patterns, limit=limit, ahead=following.end if following else None)
        written = None
        if due.window is not None:
            if following:
                following.plan(conn, due.known, due.window.upto_lsn, due.following, due.logical)
            written = _land(ctx, due, due.window, following)
            with ctx.ledger.session():
                _stage(ctx, conn, due, due.window, written)
        confirmed = slot.advance(conn, due.known.slot, due.upto)
        if written is not None:
            ctx.ledger.windows.confirm(ctx.name, through=Lsn(min(confirmed, due.upto)))
    seconds, landed = monotonic() - started, written.landed if written else None
    report = WindowReport.of(
        due.known.position, due.upto, landed, seconds, due.end, ahead=bool(written and written.ahead)
    )
    ctx.progress(report.line())
    return report


@dataclass(frozen=True, slots=True)
class _Due:
    """Hold what a look at ledger and source has found, and the window that is planned, None where there is no new WAL."""

    known: ExpectedState
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


def _look(ctx: Context, conn: session.SourceSession, *, patterns: bool, limit: Lsn | None, ahead: Lsn | None) -> _Due:
    """Hold ledger and source against each other, let them follow each other, and plan the window, to `ahead` where that is read."""
    record = running(ctx)
    landing_mark.require(ctx)
    end = server_info.position(conn)
    # after the position: so the catalog knows every column that the window can bring
    known = schema.looked(ctx)
    chosen = ctx.pipeline.tables if patterns else None
    trigger = ddl_trigger.read(conn) if ctx.pipeline.source.ddl_trigger else None
    found = catalog_snapshot.read(conn, record.publication, patterns=chosen, known=known)
    before = source_state.with_readings(conn, record, found.publication, end.flushed)
    window_proof.heal(ctx, conn, record, before)
    if end.seen is not None:
        ctx.ledger.changelogs.note_source_clock(ctx.name, at=end.seen, lsn=end.flushed, looked_at=end.time)
    if follow_patterns(ctx, conn, found, on_standby=before.standby):
        found = catalog_snapshot.read(conn, record.publication, known=known)
        slot_verdict.same_publication(record, found.publication.oid if found.publication else None)
    follow_options(ctx, conn, found.publication, found.tables)
    follow_publication(ctx, conn, found, position=record.position)
    look = schema.follow(ctx, conn, found, None if trigger is None else trigger.token or "")
    recent = [window_size.Taken(*taken) for taken in ctx.ledger.windows.recent(ctx.name, _RECENT)]
    reach = ahead or _reach(ctx, recent, record.position, before)
    upto = Lsn(min(end.flushed, reach, limit or end.flushed))
    window = plan(ctx, record, end, upto, before) if upto > record.position else None
    after = window.upto_lsn if window else upto
    reach = _reach(ctx, recent, after, before)
    following = min(end.flushed, reach) if end.flushed - after >= (reach - after) * _WORTH else after
    return _Due(record, before, end, look, window, Lsn(following), trigger)


def _reach(ctx: Context, recent: Sequence[window_size.Taken], position: Lsn, before: SourceState) -> int:
    """Return how far a window from a position on may reach for its time and its ceiling."""
    settings = ctx.pipeline.capture
    reread = 0 if before.restart is None else max(0, position - before.restart)
    return position + window_size.window_bytes(
        recent, reread=reread, ceiling=settings.max_wal_bytes, seconds=settings.window_seconds
    )


def _judge_again(ctx: Context, conn: session.SourceSession, due: _Due) -> None:
    """Judge everything again between peek and staging: what another session did meanwhile may have cost us changes."""
    if (standing := running(ctx).position) != due.known.position:  # another run, because this one has lost the lock
        raise moved(ctx.name, due.known.position, standing)
    published = publication.read(conn, due.known.publication)
    now = source_state.with_readings(conn, due.known, published, server_info.flushed(conn))
    slot_verdict.judge_again(due.known, due.before, now)
    follow_options(ctx, conn, published)
    if due.logical is Logical.PROVED and ddl_trigger.read(conn) != due.trigger:
        raise SourceError(
            "source-error",
            f"expected the event trigger at {conn.place} to stay as it was while a window was read, got another one, which "
            "proves other messages; nothing of the window was staged: capture again",
        )


def sweep(ctx: Context, attempts: Sequence[WindowRecord]) -> None:
    """Delete what runs that died before staging have written: attempts that the ledger will not stage any more."""
    for dead in attempts:
        ctx.landing.delete_folder(layout.window_folder(ctx.name, dead.from_lsn, dead.upto_lsn, dead.attempt))


def plan(ctx: Context, known: ExpectedState, end: server_info.Position, upto: Lsn, before: SourceState) -> WindowRecord:
    """Plan the window that follows, to the next barrier at most, in place of what a dead run has left."""
    dead = ctx.ledger.windows.all(ctx.name, state="planned")
    planned = ctx.ledger.windows.plan(
        ctx.name,
        from_lsn=known.position,
        upto_lsn=upto,
        attempt=new_attempt(),
        source_time=end.time,
        settings_digest=session.pinned_digest(),
        oldest_xid=end.oldest_xid,
        read_from=before.restart,
    )
    sweep(ctx, dead)  # after it: one that only seems to be dead can stage nothing from here on
    return planned


@dataclass(frozen=True, slots=True)
class _Written:
    """Hold what a window has left in the landing zone, the digest of its messages, since when it was made, and whether it was read ahead."""

    landed: Landed
    digest: str
    started: float
    ahead: bool


def _land(ctx: Context, due: _Due, window: WindowRecord, following: NextWindow | None) -> _Written:
    """Peek a planned window and write it; nothing refers to what is written."""
    source, digest, logical = ctx.pipeline.source, StreamDigest(), due.logical
    ahead = following.take(window, logical) if following else None
    peeked, started = ahead or (
        messages(ctx, due.known, window.upto_lsn, origin=source.origin, logical=logical),
        monotonic(),
    )
    decoder = ColumnarDecoder(
        xid_horizon=due.end.xid_horizon,
        skip_origins=frozenset(source.skip_origins),
        hears=logical is Logical.PROVED,
    )
    folder = layout.window_folder(ctx.name, window.from_lsn, window.upto_lsn, window.attempt)
    batches = digest.passing(following.starting(peeked) if following else peeked)
    landed = land(batches, decoder, ctx.landing, folder, ctx.ledger.windows.relation_versions(ctx.name).number)
    return _Written(landed, digest.text(window_proof.asked(source.origin, logical)), started, ahead is not None)


def _stage(ctx: Context, conn: session.SourceSession, due: _Due, window: WindowRecord, written: _Written) -> None:
    """Stage what was written; from the end of this function the window exists."""
    landed = written.landed
    _judge_again(ctx, conn, due)
    numbers = evidence.settle(ctx, conn, due.look, landed, window)
    staged = ctx.ledger.windows.stage(
        ctx.name,
        from_lsn=window.from_lsn,
        attempt=window.attempt,
        files=landed.files,
        relations=landed.relations,
        numbers=numbers,
        states=evidence.told_states(landed),
        transactions=landed.totals.transactions,
        messages=landed.totals.messages,
        digest=written.digest,
        seconds=monotonic() - written.started,
    )
    late_changes.report_late_changes(ctx, staged)
