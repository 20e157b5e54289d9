"""Whether the server can read its own WAL at all where the slot stands: else the slot can never be moved on.

Up to PostgreSQL 15 one record may be larger than the memory that the server allocates at once to read it, such as a logical message
of almost 1 GiB, which anybody may write. No transaction can be left out there, because a slot is moved by reading.
"""

from __future__ import annotations

from penstock.errors import SourceError
from penstock.flow.context import Context
from penstock.flow.expected_state import ExpectedState
from penstock.lsn import Lsn
from penstock.source import server_info, session, slot
from penstock.source.session import SourceSession


def problem(ctx: Context, known: ExpectedState) -> SourceError | None:
    """Return what is wrong where the slot cannot be moved over the next window, None where it can. Raises SourceError."""
    timeout = ctx.pipeline.capture.statement_timeout
    with session.connect(ctx.source, what=f"{ctx.name}:wal", statement_timeout=timeout) as conn:
        end = Lsn(min(server_info.position(conn).flushed, known.position + ctx.pipeline.capture.max_wal_bytes))
        return None if end <= known.position or is_passable(conn, known, end) else error(ctx, known.position)


def is_passable(conn: SourceSession, known: ExpectedState, upto: Lsn) -> bool:
    """Return whether the server can move the slot to a position, by doing it with a copy of the slot. Raises SourceError."""
    try:
        with slot.copied(conn, known.slot) as copy:
            slot.advance(conn, copy, upto)
    except SourceError as found:
        if found.slug != "decoding-limit":
            raise
        return False
    return True


def error(ctx: Context, place: Lsn) -> SourceError:
    """Return the error that halts the pipeline, as of a place after which the server cannot read."""
    return SourceError(
        "wal-unreadable",
        f"expected {ctx.source.address} to be able to read its WAL after {place}, got an error of its own limits; no slot can be moved "
        f"over that place, so nothing after it can be captured: recover with a new slot and new copies, penstock recover {ctx.name}",
    )
