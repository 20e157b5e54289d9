"""Which intervals of commit time are landed whole: the verdict on one, before any work is done for it.

The source's clock, noted with the end of its WAL, ties times to positions: what capture has passed, an interval has.
What retention took away cannot be filled; what no slot ever saw is filled without it, and named.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.contract.manifest import FileEntry, microseconds
from penstock.errors import LedgerError
from penstock.flow.context import Context
from penstock.ledger.changelogs import HistoryRecord
from penstock.lsn import Lsn


@dataclass(frozen=True, slots=True)
class Interval:
    """Hold `[start, end)`, times of commit with their zone."""

    start: datetime
    end: datetime

    def __str__(self) -> str:
        return f"[{format_time(self.start)}, {format_time(self.end)})"


def may_hold(entry: FileEntry, interval: Interval) -> bool:
    """Return whether a landing file may hold changes of the interval; one without recorded times may."""
    if not entry.rows:
        return False
    low, high = entry.min_committed_at, entry.max_committed_at
    if low is None or high is None:
        return True
    return low < microseconds(interval.end) and high >= microseconds(interval.start)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Say whether an interval can be filled now: `waiting` says for what, `warnings` what it will lack."""

    waiting: str | None = None
    warnings: tuple[str, ...] = ()


def format_time(time: datetime) -> str:
    """Return a time as messages show it."""
    return f"{time.astimezone(UTC):%F %T} UTC"


def parse(start: str | None, end: str | None) -> Interval:
    """Read an interval given by hand, in ISO 8601; a time without a zone is one in UTC; raises LedgerError."""
    if not start or not end:
        raise LedgerError("interval-invalid", "expected both ends of an interval, got one; give from and to")
    return Interval(_time(start), _time(end))


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise LedgerError(
            "interval-invalid", f"expected a time such as 2026-11-21T00:00:00Z, got {text!r} instead; write it so"
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def verdict(ctx: Context, known: HistoryRecord, interval: Interval) -> Verdict:
    """Decide on an interval now, by the pipeline's own settings; raises as `judge` does."""
    return judge(known, interval, slack=ctx.pipeline.changelog.slack, now=datetime.now(UTC))


def require(ctx: Context, known: HistoryRecord, interval: Interval) -> Lsn:
    """Return the position through which the interval is landed; warn of what it lacks.

    Raises LedgerError: "interval-invalid", "interval-gone", "interval-not-captured".
    """
    decided = verdict(ctx, known, interval)
    if decided.waiting is not None:
        raise LedgerError("interval-not-captured", f"{decided.waiting}; let capture run, then fill it again")
    for warning in decided.warnings:
        ctx.progress(warning)
        ctx.ledger.events.add(ctx.name, slug="interval-gone", level="warning", message=warning)
    return known.position or Lsn(0)


def judge(known: HistoryRecord, interval: Interval, *, slack: float, now: datetime) -> Verdict:
    """Decide on an interval; raises LedgerError("interval-invalid", "interval-gone")."""
    require_valid(interval, now)
    needed = interval.end + timedelta(seconds=slack)
    if known.known_from is None:
        return Verdict(waiting=f"expected {interval} to be captured, but capture has not run yet")
    warnings = [*_beginning(known, interval), *_gaps(known, interval)]
    if known.captured_through is None or known.captured_through < needed:
        through = format_time(known.captured_through) if known.captured_through else "nothing yet"
        state = f", and the pipeline is {known.state}" if known.state != "running" else ""
        return Verdict(
            waiting=f"expected everything through {format_time(needed)} to be captured, got {through}{state}"
        )
    return Verdict(warnings=tuple(warnings))


def require_valid(interval: Interval, now: datetime) -> None:
    """Raise LedgerError("interval-invalid") for an interval that no history could fill; the ledger cannot be asked for it."""
    if interval.start >= interval.end:
        raise LedgerError(
            "interval-invalid",
            f"expected an interval that begins before it ends, got {interval}; exchange or correct its ends",
        )
    if interval.end > now:
        raise LedgerError(
            "interval-invalid",
            f"expected an interval that is over, got {interval} at {format_time(now)}; choose an earlier end, or wait for it",
        )


def _beginning(known: HistoryRecord, interval: Interval) -> list[str]:
    """Hold an interval against the oldest landed window."""
    since = known.known_from
    if since is None or interval.start >= since:
        return []
    gap = next((gap for gap in known.gaps if gap.era == known.known_era - 1), None)
    if known.from_the_start and gap is None and interval.end > since:
        return [f"{interval} begins before the pipeline does: the changelogs begin at {format_time(since)}"]
    if known.from_the_start and gap is not None and gap.from_time is not None and interval.start >= gap.from_time:
        return []  # `_gaps` names it
    first = _first_complete(interval, since)
    raise LedgerError(
        "interval-gone",
        f"expected every window since {format_time(interval.start)} in the landing zone, but what is there begins at "
        f"{format_time(since)}; the first interval of this length that is complete is {first}",
    )


def _gaps(known: HistoryRecord, interval: Interval) -> list[str]:
    """Name what no slot saw of the interval."""
    found: list[str] = []
    for gap in known.gaps:
        begins, ends = gap.from_time, gap.upto_time
        if (begins is None or begins < interval.end) and (ends is None or ends > interval.start):
            since = format_time(begins) if begins else "an unknown time"
            until = format_time(ends) if ends else "now"
            found.append(
                f"{interval} lacks changes: none was captured between {since} and {until} ({gap.reason}, after era {gap.era})"
            )
    return found


def _first_complete(interval: Interval, since: datetime) -> Interval:
    length = interval.end - interval.start
    steps = -((interval.start - since) // length)
    start = interval.start + steps * length
    return Interval(start, start + length)
