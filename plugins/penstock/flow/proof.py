"""Prove that the source is the one that was read, where something may have taken it back in time.

A crash takes the slot back, and a restored copy of the server does as well: identifier and timeline are the same. A window
can be read again message by message, so each one that the slot has forgotten is, and only then is the slot advanced over it.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import SourceError
from penstock.flow import judge, standing
from penstock.flow.context import Context
from penstock.flow.judge import Found, Known
from penstock.flow.stream import messages
from penstock.ledger.records import WindowRecord
from penstock.lsn import Lsn
from penstock.source import facts, peek, slot
from penstock.source.peek import Transaction
from penstock.source.session import SourceSession
from penstock.wire.digest import StreamDigest

_SKIPPED = "skipped-"


def require_past(ctx: Context, conn: SourceSession, known: Known) -> None:
    """Raise SourceError("source-changed") where the source does not know a transaction that was landed."""
    xid = ctx.ledger.newest_xid(ctx.name)
    if xid is not None:
        judge.same_past(xid, facts.fate(conn, xid), known.position)


def advance_proved(ctx: Context, conn: SourceSession, known: Known, before: Found) -> None:
    """Advance a slot that is behind the ledger, window by window, each read again and found to be the one that was staged.

    Raises SourceError("source-changed") where one is another, or cannot be read again; the slot then stays before it.
    """
    start = before.confirmed or Lsn(0)
    if start < known.consistent_point:  # adopted, and set back to where its first owner had it: no window is of there
        start = slot.advance(conn, known.slot, known.consistent_point)
    for window in judge.to_prove(known, start, ctx.ledger.windows(ctx.name, after=start)):
        ctx.progress(f"slot {known.slot} is behind the ledger: reading {window.from_lsn}-{window.upto_lsn} again")
        _prove(ctx, conn, replace(known, position=window.from_lsn), window)
        slot.advance(conn, known.slot, window.upto_lsn)


def skipped_digest(conn: SourceSession, known: Known, upto: Lsn, *, origin: str) -> str:
    """Return what stands for the digest of a window whose one transaction cannot be decoded: its id and place."""
    found = decodable(conn, known, upto, origin=origin)
    held = "undecodable" if found is None else ",".join(f"{each.xid}@{Lsn(each.lsn)}" for each in found)
    return f"{_SKIPPED}{origin}:{held}"


def decodable(conn: SourceSession, known: Known, upto: Lsn, *, origin: str) -> list[Transaction] | None:
    """Return the transactions to `upto` as they are in binary form, None where that cannot be decoded either."""
    try:
        return peek.transactions(conn, known.slot, known.publication, upto, origin_none=origin == "none")
    except SourceError as error:
        if error.slug != "decoding-limit":
            raise
    return None


def _prove(ctx: Context, conn: SourceSession, known: Known, window: WindowRecord) -> None:
    before = standing.found(conn, known)
    origin = (window.digest or "").partition(":")[0]
    if origin.startswith(_SKIPPED):
        now = skipped_digest(conn, known, window.upto_lsn, origin=origin.removeprefix(_SKIPPED))
    else:
        seen = StreamDigest()
        for _ in seen.passing(messages(ctx, known, window.upto_lsn, origin=origin)):
            pass
        now = seen.text(origin)
    judge.judge_again(known, before, standing.found(conn, known))
    judge.same_window(window, now)
