"""Prove that the source is the one that was read, where something may have taken it back in time.

A crash takes the slot back, and a restored copy of the server does as well: identifier and timeline are the same. A window
can be read again message by message, so each one that the slot has forgotten is, and only then is the slot advanced over it.
Where the server cannot read its own WAL, no slot can be moved over that place: up to PostgreSQL 15 one record may be larger than the
memory that the server allocates at once to read it, such as a logical message of almost 1 GiB, which anybody may write.
"""

from dataclasses import replace

from penstock.errors import SourceError
from penstock.flow.capture import slot_check
from penstock.flow.capture.slot_check import HistoryError, SourceState
from penstock.flow.capture.window import asked, asked_again, request_of
from penstock.flow.context import Context
from penstock.ledger.records import ActivePipeline, WindowRecord
from penstock.lsn import Lsn
from penstock.source import peek, server_info, session, slot
from penstock.source.peek import Logical, Request, Transaction
from penstock.source.session import SourceSession
from penstock.wire.batch import StreamDigest

_SKIPPED = "skipped-"


def heal(ctx: Context, conn: SourceSession, known: ActivePipeline, before: SourceState | None = None) -> None:
    """Hold slot and ledger against each other, as the source was found; advance a slot that a server crash has set back, once it is proved to be that.

    What speaks against it is kept in the ledger until the windows since then are read again as they were staged. So neither
    time nor a slot that another session has advanced lets the pipeline continue. Raises SourceError.
    """
    before = before or slot_check.read_state(conn, known)
    try:
        if _is_behind(ctx, conn, known, before):
            _advance_proved(ctx, conn, known, before)
    except HistoryError:
        _note_unproved(ctx, conn, known)
        raise


def objection(ctx: Context, conn: SourceSession, known: ActivePipeline) -> SourceError | None:
    """Return what speaks against continuing, as far as that can be seen without moving the slot."""
    try:
        _is_behind(ctx, conn, known, slot_check.read_state(conn, known))
    except SourceError as problem:
        return problem
    return None


def _is_behind(ctx: Context, conn: SourceSession, known: ActivePipeline, found: SourceState) -> bool:
    """Return whether the slot is behind the ledger; raise SourceError where anything speaks against continuing."""
    behind = slot_check.is_behind(known, found)
    slot_check.provable(known, found)
    xid = ctx.ledger.windows.newest_xid(ctx.name)
    if xid is not None and (why := server_info.why_undone(conn, xid)):
        raise HistoryError.of(f"transaction {xid}, which is staged before {known.position}, to be committed", why)
    return behind


def _advance_proved(ctx: Context, conn: SourceSession, known: ActivePipeline, before: SourceState) -> None:
    """Advance a slot that is behind the ledger, window by window, each read again and found to be the one that was staged.

    Raises SourceError("source-changed") where one is another, or cannot be read again; the slot then stays before it.
    """
    start = before.confirmed or Lsn(0)
    if start < known.consistent_point:  # adopted, and set back to where its first owner had it: no window is of there
        start = slot.advance(conn, known.slot, known.consistent_point)
    for window in slot_check.to_prove(known, start, ctx.ledger.windows.all(ctx.name, after=start)):
        ctx.progress(f"slot {known.slot} is behind the ledger: reading {window.from_lsn}-{window.upto_lsn} again")
        _prove(ctx, conn, replace(known, position=window.from_lsn), window)
        if known.unproved_from is not None:  # before the slot is beyond it, where nothing could be proved any more
            ctx.ledger.pipelines.note_unproved(ctx.name, window.upto_lsn if window.upto_lsn < known.position else None)
        slot.advance(conn, known.slot, window.upto_lsn)


def skipped_digest(conn: SourceSession, request: Request) -> str:
    """Return what stands for the digest of a window whose one transaction cannot be decoded: its id and place."""
    found = decodable(conn, request)
    held = "undecodable" if found is None else ",".join(f"{each.xid}@{Lsn(each.lsn)}" for each in found)
    return f"{_SKIPPED}{asked(request)}:{held}"


def decodable(conn: SourceSession, request: Request) -> list[Transaction] | None:
    """Return the transactions of a request as they are in binary form, None where that cannot be decoded either."""
    try:
        return peek.transactions(conn, request)
    except SourceError as error:
        if error.slug != "decoding-limit":
            raise
    return None


def _note_unproved(ctx: Context, conn: SourceSession, known: ActivePipeline) -> None:
    """Record from where on the source is unproved: from where the slot stands, or from the earlier position that is recorded."""
    state = slot.read_slot(conn, known.slot)
    place = known.position if state is None or state.confirmed is None else state.confirmed
    unproved_from = ctx.ledger.pipelines.get(ctx.name).unproved_from
    ctx.ledger.pipelines.note_unproved(ctx.name, place if unproved_from is None else Lsn(min(unproved_from, place)))


def _prove(ctx: Context, conn: SourceSession, known: ActivePipeline, window: WindowRecord) -> None:
    before = slot_check.read_state(conn, known)
    options = (window.digest or "").partition(":")[0]
    request = request_of(ctx, known, window.upto_lsn, Logical.UNSENT)
    request = asked_again(options.removeprefix(_SKIPPED), request)
    if options.startswith(_SKIPPED):
        now = skipped_digest(conn, request)
    else:
        seen = StreamDigest()
        for _ in seen.passing(peek.peek(ctx.source, request, ctx.pipeline.capture)):
            pass
        now = seen.text(options)
    slot_check.judge_again(known, before, slot_check.read_state(conn, known))
    slot_check.same_window(window, now)


def unreadable(ctx: Context, known: ActivePipeline) -> SourceError | None:
    """Return what is wrong where the slot cannot be moved over the next window, None where it can. Raises SourceError."""
    timeout = ctx.pipeline.capture.statement_timeout
    with session.connect(ctx.source, what=f"{ctx.name}:wal", statement_timeout=timeout) as conn:
        end = Lsn(min(server_info.position(conn).flushed, known.position + ctx.pipeline.capture.max_wal_bytes))
        return None if end <= known.position or is_passable(conn, known, end) else wal_unreadable(ctx, known.position)


def is_passable(conn: SourceSession, known: ActivePipeline, upto: Lsn) -> bool:
    """Return whether the server can move the slot to a position, by doing it with a copy of the slot. Raises SourceError."""
    try:
        with slot.copied(conn, known.slot) as copy:
            slot.advance(conn, copy, upto)
    except SourceError as found:
        if found.slug != "decoding-limit":
            raise
        return False
    return True


def wal_unreadable(ctx: Context, place: Lsn) -> SourceError:
    """Return the error that halts the pipeline, as of a place after which the server cannot read."""
    return SourceError(
        "wal-unreadable",
        f"expected {ctx.source.address} to be able to read its WAL after {place}, got an error of its own limits; no slot can be moved "
        f"over that place, so nothing after it can be captured: recover with a new slot and new copies, penstock recover {ctx.name}",
    )
