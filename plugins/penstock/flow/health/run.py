"""Slot health: observe, judge, act, report. Seconds of work, and never a peek.

`look` only reports; `check` is what the DAG runs. `drain` is a capture with larger windows, for a slot that has come
near its limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from penstock.errors import ConfigError, SourceError
from penstock.flow.capture import run as capturing
from penstock.flow.context import Context
from penstock.flow.health import report
from penstock.flow.health.act import act, send_alerts, settle
from penstock.flow.health.alerts import Alert, Deliver, Delivery, alerts
from penstock.flow.health.causes import folded
from penstock.flow.health.findings import Finding
from penstock.flow.health.input import DagState, Standing, stand
from penstock.flow.health.judge import LAKE_RULES, Verdict, judge, of_lake, worst_first
from penstock.flow.health.observe import observe
from penstock.units import several

_LARGER = 4
_SOURCE = "source"


def no_delivery(_: Alert) -> Delivery:
    """Send no alert: the event and the log line are all."""
    return Delivery()


def look(ctx: Context, dags: Mapping[str, DagState] | None = None) -> Verdict:
    """Observe and judge, and change nothing anywhere; raises SourceError, LedgerError."""
    return judge(observe(ctx, stand(ctx, dags or {}, datetime.now(UTC))), ctx.pipeline.health)


@dataclass(frozen=True, slots=True)
class Checked:
    """Hold the verdict that was carried out, and the complaints of channels that did not take an alert."""

    verdict: Verdict
    undelivered: tuple[str, ...]


def check(ctx: Context, dags: Mapping[str, DagState] | None = None, deliver: Deliver = no_delivery) -> Checked:
    """Observe, judge and act; a pipeline that the ledger does not know is only reported.

    Raises SourceError when the source can't be asked (an alarm of its own), LedgerError.
    """
    now = stand(ctx, dags or {}, datetime.now(UTC))
    try:
        verdict = judge(observe(ctx, now), ctx.pipeline.health)
    except SourceError as error:
        _cannot_look(ctx, error, now, deliver)
        raise
    for label, value in report.lines(verdict, ctx.pipeline.health):
        ctx.progress(f"{label}: {value}")
    undelivered = act(ctx, verdict, deliver) if verdict.seen.known.record is not None else []
    return Checked(verdict, tuple(undelivered))


def require_delivered(undelivered: Sequence[str]) -> None:
    """Raise ConfigError("alert-undelivered") if a channel complained."""
    if undelivered:
        raise ConfigError(
            "alert-undelivered", "; ".join(undelivered) + "; fix the connection: what no channel took is due again"
        )


def drain(ctx: Context) -> capturing.CaptureReport:
    """Capture now, with windows four times as large, so that more WAL is freed per reading of the old one."""
    settings = ctx.pipeline.capture
    larger = settings.model_copy(update={"max_wal_bytes": _LARGER * settings.max_wal_bytes})
    wide = replace(ctx, pipeline=ctx.pipeline.model_copy(update={"capture": larger}))
    done = capturing.capture(wide)
    message = f"drained slot {ctx.pipeline.slot} in {several(len(done.windows), 'window')} through {done.upto}"
    ctx.ledger.events.add(ctx.name, slug="slot-retained", level="info", message=message, details=done.summary())
    return done


def _cannot_look(ctx: Context, error: SourceError, now: Standing, deliver: Deliver) -> None:
    """Open the alarm that the source can't be asked, and judge what needs no source; the other alarms stay as they are."""
    if now.lake is None:  # a pipeline that the ledger does not know
        return
    numbers, step = {"error": error.slug}, "the slot is not observed until the source answers"
    unreachable = Finding("source-unreachable", _SOURCE, "critical", error.message, step, numbers)
    found = worst_first(folded([unreachable, *of_lake(now)], now.alarms))
    for each in found:
        ctx.progress(f"{each.level} {each.slug}: {each.message}")
    settle(ctx, found, now, frozenset().union(*LAKE_RULES.values()))
    due = alerts(ctx.name, ctx.ledger.health.alarms(ctx.name), ctx.pipeline.health, now.at)
    for failure in send_alerts(ctx, due, deliver):
        ctx.progress(f"[alert-undelivered] {failure}")
