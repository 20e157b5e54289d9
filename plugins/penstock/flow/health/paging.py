"""Alert a person at once of an error that no retry fixes and that halts nothing.

The task that met it opens an alarm of the error's name and sends it at the critical level; it is sent again by that
task alone, at that level's interval, and ends when the task next succeeds or a person resumes the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from penstock.conditions import PAGED, with_runbook
from penstock.errors import LedgerError, PenstockError, SourceError
from penstock.flow.context import Context
from penstock.flow.health.act import send_alerts
from penstock.flow.health.alerts import Alert, Deliver, alerts
from penstock.flow.health.input import UNKNOWN
from penstock.flow.health.links import Links
from penstock.ledger.health import AlarmRecord

_NEXT = "no retry fixes it: each run meets it again and fails at once, until it is fixed; then the next run continues"


def page(ctx: Context, error: PenstockError, task: str, deliver: Deliver) -> None:
    """Open the alarm of an error that `task` met, and send it if that is due.

    The alert is sent also if the ledger cannot record it.
    """
    now = datetime.now(UTC)
    try:
        if _is_alerted(ctx, error):
            return
        ctx.ledger.health.see_alarm(
            ctx.name,
            slug=error.slug,
            subject=task,
            level="critical",
            message=error.message,
            numbers={"next": _NEXT},
            at=now,
        )
        _send(ctx, task, deliver, now)
    except LedgerError as unknown:
        ctx.progress(f"the ledger cannot record who gets this alert: {unknown}")
        _log_failures(ctx, deliver(_unrecorded(ctx, error, task, now)).failures)


def task_succeeded(ctx: Context, task: str, deliver: Deliver) -> None:
    """Close the alarms that `task` has opened, and send their end: it has succeeded."""
    now = datetime.now(UTC)
    try:
        if _close(ctx, _paged(ctx, task), now):
            _send(ctx, task, deliver, now)
    except LedgerError as unknown:  # the task itself has succeeded; its next success closes them
        if unknown.slug not in UNKNOWN:  # before the first bootstrap there is nothing to close
            ctx.progress(f"the ledger cannot record that {task} has succeeded: {unknown}")


def answer(ctx: Context) -> bool:
    """Close the alarms of all tasks, for a person says that they are fixed; return whether there were any.

    Slot health sends their end. What is still there opens them again.
    """
    return _close(ctx, _paged(ctx), datetime.now(UTC))


def _paged(ctx: Context, task: str | None = None) -> list[AlarmRecord]:
    return [each for each in ctx.ledger.health.alarms(ctx.name) if each.slug in PAGED and task in (None, each.subject)]


def _close(ctx: Context, alarms: list[AlarmRecord], now: datetime) -> bool:
    for each in alarms:
        ctx.ledger.health.close_alarm(ctx.name, slug=each.slug, subject=each.subject, at=now)
    return bool(alarms)


def _is_alerted(ctx: Context, error: PenstockError) -> bool:
    """Return whether slot health has sent an alert that the source cannot be asked for the same reason."""
    known = ctx.ledger.health.alarms(ctx.name) if isinstance(error, SourceError) else []
    return any(
        each.slug == "source-unreachable"
        and each.numbers.get("error") == error.slug
        and each.closed_at is None
        and each.last_notified_at is not None
        for each in known
    )


def _send(ctx: Context, task: str, deliver: Deliver, now: datetime) -> None:
    _log_failures(ctx, send_alerts(ctx, alerts(ctx.name, _paged(ctx, task), ctx.pipeline.health, now), deliver))


def _log_failures(ctx: Context, failures: Iterable[str]) -> None:
    for failure in failures:
        ctx.progress(with_runbook(f"[alert-undelivered] {failure}", "alert-undelivered"))


def _unrecorded(ctx: Context, error: PenstockError, task: str, now: datetime) -> Alert:
    policy = ctx.pipeline.health
    alarm = AlarmRecord(
        number=0,
        pipeline=ctx.name,
        slug=error.slug,
        subject=task,
        level="critical",
        message=error.message,
        numbers={"next": _NEXT},
        opened_at=now,
        seen_at=now,
        last_notified_at=None,
        last_notified_level=None,
        closed_at=None,
    )
    links = Links(published=policy.runbooks)
    return Alert(ctx.name, alarm, "opened", "critical", tuple(policy.critical.channels), now, links=links)
