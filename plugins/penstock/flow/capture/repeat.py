"""Capture again and again within one run: a run of the schedule costs a process, a capture of few changes does not.

Each capture opens its own connections and holds the pipeline's lock for its windows only. Between two of them nothing is held.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from croniter import croniter

from penstock.flow.capture.reports import CaptureReport, WindowReport
from penstock.flow.capture.run import capture
from penstock.flow.context import Context


def _ignore(_: CaptureReport) -> None:
    return None


def capture_repeatedly(
    ctx: Context,
    *,
    why_end: Callable[[], str | None] = lambda: None,
    landed: Callable[[CaptureReport], None] = _ignore,
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
        if report.changes:
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
