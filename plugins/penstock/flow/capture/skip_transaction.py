"""Leave out the one transaction that the server cannot decode, so that all others are captured.

Everything before it is captured as usual, it alone is left out, and the tables that it touched are paused: a new copy
has its rows. The place is found by halving the window; the tables by decoding in binary form, in which rows are smaller.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic

from penstock.contract.manifest import moment
from penstock.errors import LedgerError, Trouble
from penstock.flow import table_status
from penstock.flow.capture import history_proof, slot_check
from penstock.flow.capture import run as capture
from penstock.flow.capture.slot_check import SourceState
from penstock.flow.capture.window import plan_window, request_of
from penstock.flow.changelog import late_changes
from penstock.flow.context import Context
from penstock.flow.guards import running, slot_work
from penstock.ledger.records import ActivePipeline, SkippedRecord
from penstock.ledger.table_records import TableRecord
from penstock.ledger.windows import WindowContent
from penstock.lsn import Lsn
from penstock.source import peek, server_info, session, slot
from penstock.source.peek import Logical, Request, Transaction
from penstock.source.session import SourceSession
from penstock.wire.messages import POSTGRES_EPOCH_US

_PAGE_HEAD = 40  # bytes, the longer one of a segment's first page; no record is that short


@dataclass(frozen=True, slots=True)
class Offender:
    """Name the transaction that cannot be decoded, and the place after which it is the first to commit.

    `found` is None where no form of it can be decoded; `passable`: the server can move the slot over it.
    """

    lsn: Lsn
    after: Lsn
    found: Transaction | None
    tables: tuple[TableRecord, ...]
    passable: bool = True

    def lines(self) -> list[str]:
        """Say what it is and what would follow."""
        if not self.passable:
            return [
                f"the server cannot read its own WAL after {self.lsn}, so nothing there can be left out, nor captured after it",
                "all before it would be captured; then recover, which makes a new slot and copies every table again",
            ]
        size = f", its largest message is {self.found.largest >> 20} MiB in binary form" if self.found else ""
        names = ", ".join(table.qualified for table in self.tables) or "none that the pipeline knows"
        how = "it touched" if self.found else "it cannot be decoded in any form, so it may have touched every table:"
        return [
            f"the transaction that committed at {self.lsn} cannot be decoded{size}",
            f"{how} {names}",
            "all before it would be captured, it alone left out, and these tables paused until they are copied again",
        ]


def find_offender(ctx: Context) -> Offender | None:
    """Find the first transaction of the next window that cannot be decoded, None where all can; stages nothing.

    Takes several times as long as a capture. Raises SourceError, LedgerError.
    """
    with _standing(ctx) as (conn, known, _):
        end = Lsn(min(server_info.position(conn).flushed, known.position + ctx.pipeline.capture.max_wal_bytes))
        return None if end == known.position else _offender(ctx, conn, known, end)


def skip(ctx: Context) -> Offender | None:
    """Capture up to the transaction that cannot be decoded and leave it out; return it, None where nothing was in the way.

    Raises LedgerError, and SourceError("wal-unreadable" | ...) where it cannot be left out.
    """
    offender = find_offender(ctx)
    if offender is None:
        return None
    while running(ctx).position < offender.after:
        capture.capture_window(ctx, limit=offender.after)
    if not offender.passable:
        raise history_proof.wal_unreadable(ctx, offender.lsn)
    return offender if _leave_out(ctx, offender) else None


def skip_or_show(ctx: Context, *, dry_run: bool) -> list[str]:
    """Look, or skip, and say what was found as a person reads it; raises as they do."""
    offender = find_offender(ctx) if dry_run else skip(ctx)
    lines = offender.lines() if offender else ["every transaction can be decoded: capture takes them all"]
    for line in lines:
        ctx.progress(line)
    return lines


def _leave_out(ctx: Context, offender: Offender) -> bool:
    """Stage the window of one transaction without it; return False where it decodes now, alone, for capture to take it."""
    started, upto = monotonic(), Lsn(offender.lsn + 1)
    reason = f"the transaction that committed at {offender.lsn} was left out, because the server cannot decode it: copy the table again"
    with _standing(ctx) as (conn, known, before):
        if known.position != offender.after:
            raise LedgerError(
                "ledger-conflict",
                f"expected pipeline {ctx.name} to stand at {offender.after}, where the transaction is to be left out, got "
                f"{known.position}; another run has captured it: look again",
            )
        request = _request(ctx, known, upto)
        if peek.decodes(conn, request):
            return False
        end = server_info.position(conn)
        digest = history_proof.skipped_digest(conn, request)
        slot_check.judge_again(known, before, slot_check.read_state(conn, known))
        since, until = _committed(ctx, offender, end)
        skipped = SkippedRecord(
            lsn=offender.lsn,
            xid=None if offender.found is None else _whole_id(offender.found.xid, end.xid_horizon),
            oids=[table.oid for table in offender.tables],
            known_lsn=end.flushed,
            since=since,
            until=until,
        )
        planned = plan_window(ctx, known, end, upto, before)
        troubles = dict.fromkeys(skipped.oids, Trouble("transaction-skipped", reason, "copy"))
        with ctx.ledger.together(ctx.name):
            _give_up_rebuilds(ctx, offender, reason)
            table_status.stop_all(ctx, offender.tables, troubles)
            ctx.ledger.windows.stage(
                ctx.name,
                from_lsn=known.position,
                attempt=planned.attempt,
                content=WindowContent((), {}, transactions=0, messages=0, skipped=skipped),
                digest=digest,
                seconds=monotonic() - started,
            )
        late_changes.notice_skip(ctx, skipped)
        confirmed = slot.advance(conn, known.slot, planned.upto_lsn)
        ctx.ledger.windows.confirm(ctx.name, through=Lsn(min(confirmed, planned.upto_lsn)))
    ctx.progress(reason)
    return True


@contextmanager
def _standing(ctx: Context) -> Iterator[tuple[SourceSession, ActivePipeline, SourceState]]:
    """Hold the pipeline's lock on a session with the memory of a peek, slot and ledger at one position."""
    settings = ctx.pipeline.capture
    with session.connect(ctx.source, what=f"{ctx.name}:skip", statement_timeout=settings.statement_timeout) as conn:
        session.pin(conn, peek.settings(settings))
        with slot_work(ctx):
            known = running(ctx)
            before = slot_check.read_state(conn, known)
            history_proof.heal(ctx, conn, known, before)
            yield conn, known, before


def _request(ctx: Context, known: ActivePipeline, upto: Lsn) -> Request:
    """Ask for logical messages as capture does, for the server may fail at one of them."""
    return request_of(ctx, known, upto, Logical.PASSED_OVER if ctx.pipeline.source.ddl_trigger else Logical.UNSENT)


def _offender(ctx: Context, conn: SourceSession, known: ActivePipeline, end: Lsn) -> Offender | None:
    """Halve the window until the first place is found whose transaction cannot be decoded."""

    request = _request(ctx, known, end)

    def decodes(place: int) -> bool:
        return peek.decodes(conn, replace(request, upto=Lsn(place)))

    if decodes(end):
        return None
    found = history_proof.decodable(conn, request)
    places: Sequence[int] = range(known.position, end) if found is None else [each.lsn for each in found]
    place = bisect_left(places, True, key=lambda each: not decodes(each + 1))
    lsn, transaction = Lsn(places[place]), None if found is None else found[place]
    # where the commit is the first record of a page, a peek to it reads it: then end before the page's head
    after = lsn if lsn > known.position and decodes(lsn) else Lsn(lsn - _PAGE_HEAD)
    passable = transaction is not None or history_proof.is_passable(conn, known, Lsn(lsn + 1))
    return Offender(lsn, Lsn(max(after, known.position)), transaction, _touched(ctx, transaction), passable)


def _touched(ctx: Context, transaction: Transaction | None) -> tuple[TableRecord, ...]:
    there = [table for table in ctx.ledger.tables.all(ctx.name) if table.state != "dropped" and table.left_lsn is None]
    return tuple(table for table in there if transaction is None or table.oid in transaction.oids)


def _give_up_rebuilds(ctx: Context, offender: Offender, reason: str) -> None:
    """End what is being built of the tables from older copies and windows; a shadow as of a place before it stays."""
    oids = {table.oid for table in offender.tables}
    for rebuild in ctx.ledger.loads.builds(ctx.name):
        if rebuild.oid in oids and (rebuild.goal_lsn is None or rebuild.goal_lsn > offender.lsn):
            table_status.give_up(ctx, rebuild, reason)


def _committed(ctx: Context, offender: Offender, end: server_info.Position) -> tuple[datetime | None, datetime | None]:
    """Return the times between which the transaction committed, by the source's clock; both are one where the transaction carries its own.

    Where no form of it can be decoded: all that committed before the time that capture has passed is captured.
    """
    if offender.found is not None:
        try:
            time = moment(offender.found.committed + POSTGRES_EPOCH_US)
        except OverflowError:  # a time that an origin has made up, beyond every calendar
            return None, None
        return time, time
    passed = ctx.ledger.changelogs.history(ctx.name).captured_through
    return (None if passed is None else min(passed, end.time)), end.time


def _whole_id(xid: int, horizon: int) -> int:
    """Return the 64-bit id of a transaction, the highest below the horizon that has these 32 bits."""
    return horizon - 1 - ((horizon - 1 - xid) % (1 << 32))
