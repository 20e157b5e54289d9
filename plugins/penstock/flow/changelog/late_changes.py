"""Late changes: captured after the interval in which they claim to have committed was filled.

The clock of the source, or an origin, decides what a change's time is, so this can always happen. Whichever
finishes second, the window or the fill, reports the interval that must be refilled.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from penstock.contract.manifest import FileEntry, microseconds, moment
from penstock.flow.changelog.coverage import Interval, may_hold
from penstock.flow.context import Context
from penstock.ledger.changelogs import FillRecord
from penstock.ledger.records import SkippedRecord, WindowRecord
from penstock.lsn import Lsn
from penstock.units import several

SLUG = "changes-late"


def report_late_changes(ctx: Context, window: WindowRecord) -> None:
    """Hold a window that was just staged against the intervals filled before."""
    timeless = [file for file in window.files if file.rows and file.max_committed_at is None]
    for file in timeless:
        message = (
            f"changes of table {file.oid} in {file.path} claim to have committed at no time of the calendar: "
            "they are in no changelog"
        )
        ctx.ledger.events.add(ctx.name, slug=SLUG, level="warning", table_oid=file.oid, message=message)
    ends = [(low, high) for low, high in map(_ends, window.files) if low is not None and high is not None]
    if not ends or window.staged_at is None:
        return
    fills = _overlapping(ctx, min(low for low, _ in ends), max(high for _, high in ends))
    _notice(ctx, window.files, [fill for fill in fills if fill.filled_at < window.staged_at])


def notice_fill(ctx: Context, fill: FillRecord) -> None:
    """Hold an interval that was just filled against the windows that were staged while that was done."""
    work = ctx.ledger.changelogs.interval_work(ctx.name, from_time=fill.from_time, upto_time=fill.upto_time)
    for window in work.windows:
        missed = (window.era, window.upto_lsn) > (fill.era, fill.through_lsn)
        if missed and window.staged_at is not None and window.staged_at < fill.filled_at:
            _notice(ctx, window.files, [fill])
    for missing in work.missing:
        unseen = (missing.era, missing.lsn) >= (fill.era, fill.through_lsn)
        if unseen and missing.staged_at is not None and missing.staged_at < fill.filled_at:
            _say_missing(ctx, missing.lsn, fill)


def notice_skip(ctx: Context, skipped: SkippedRecord) -> None:
    """Hold a transaction that was just left out against the intervals filled before: none of them says so."""
    before = None if skipped.until is None else skipped.until + timedelta(microseconds=1)
    for fill in ctx.ledger.changelogs.fills(ctx.name, since=skipped.since, before=before, limit=None):
        _say_missing(ctx, skipped.lsn, fill)


def _ends(file: FileEntry) -> tuple[int | None, int | None]:
    return file.min_committed_at, file.max_committed_at


def _overlapping(ctx: Context, low: int, high: int) -> list[FillRecord]:
    try:
        return ctx.ledger.changelogs.fills(ctx.name, since=moment(low), before=moment(high + 1), limit=None)
    except OverflowError:  # a time that an origin has made up: hold the window against every interval
        return ctx.ledger.changelogs.fills(ctx.name, limit=None)


def _notice(ctx: Context, files: Iterable[FileEntry], fills: Sequence[FillRecord]) -> None:
    """Count the changes of each interval, exactly, and say them; opens only files that may hold one."""
    late = dict.fromkeys(range(len(fills)), 0)
    for file in files:
        near = [place for place, fill in enumerate(fills) if may_hold(file, Interval(fill.from_time, fill.upto_time))]
        times = ctx.landing.read(file.path, ["committed_at"]).column(0).cast(pa.int64()) if near else None
        for place in near:
            late[place] += _within(times, fills[place])
    for place, rows in late.items():
        if rows:
            _say(ctx, fills[place], rows)


def _within(times: pa.ChunkedArray, fill: FillRecord) -> int:
    start, end = microseconds(fill.from_time), microseconds(fill.upto_time)
    return pc.sum(pc.and_(pc.greater_equal(times, start), pc.less(times, end))).as_py() or 0


def _say_missing(ctx: Context, lsn: Lsn, fill: FillRecord) -> None:
    interval = Interval(fill.from_time, fill.upto_time)
    message = (
        f"the transaction that committed at {lsn}, perhaps in {interval}, was left out after its changelogs were filled "
        f"through {Lsn(fill.through_lsn)}: fill it again, and they say so"
    )
    ctx.ledger.changelogs.note_late(ctx.name, fill, rows=1, message=message)
    ctx.progress(message)


def _say(ctx: Context, fill: FillRecord, rows: int) -> None:
    interval = Interval(fill.from_time, fill.upto_time)
    message = (
        f"{several(rows, 'change')} said to have committed in {interval} captured after its changelogs were filled "
        f"through {Lsn(fill.through_lsn)}: fill it again"
    )
    ctx.ledger.changelogs.note_late(ctx.name, fill, rows=rows, message=message)
    ctx.progress(message)
