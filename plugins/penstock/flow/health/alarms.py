"""The one way to open, keep, close and send alarms, whoever found what is wrong: slot health, a task, a comparison, a capture.

A task that meets an error which no retry fixes opens an alarm of the error's name and sends it at the critical level. That alarm
is repeated by that task alone, and ends when the task next succeeds or a person resumes the pipeline.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from penstock.conditions import PAGED, with_runbook
from penstock.errors import LedgerError, PenstockError, SourceError
from penstock.flow.check import UNKNOWN
from penstock.flow.context import Context
from penstock.flow.health.alerts import Alert, Deliver, alerts, unrecorded
from penstock.flow.health.input import HealthInput
from penstock.flow.health.rules_tables import COMPARED
from penstock.ledger.health import Finding
from penstock.ledger.records import Level

_NEXT = "no retry fixes it: each run meets it again and fails at once, until it is fixed; then the next run continues"
_EVENT_LEVELS: dict[str, Level] = {"warn": "warning", "critical": "error"}


def reconcile(
    ctx: Context,
    findings: Iterable[Finding],
    deliver: Deliver | None,
    *,
    slugs: Collection[str],
    subjects: Collection[str] | None = None,
    judged: Collection[str] | None = None,
    at: datetime | None = None,
) -> tuple[str, ...]:
    """Let the open alarms of these slugs, and subjects, be those of the findings, and send what is due; return what channels complained of.

    Of the slugs those `judged` end where they are not found again; left out, all of them. Without `deliver` slot health sends it. An alert
    that no channel took is due again next time; a channel complains once, however many it refused. Raises LedgerError.
    """
    at, health = at or datetime.now(UTC), ctx.ledger.health
    ended = slugs if judged is None else judged
    health.reconcile_alarms(ctx.name, list(findings), judged=ended, subjects=subjects, at=at)
    if deliver is None:
        return ()
    known = [
        alarm
        for alarm in health.alarms(ctx.name)
        if alarm.slug in slugs and (subjects is None or alarm.subject in subjects)
    ]
    failed: dict[str, None] = {}
    for alert in alerts(known, ctx.pipeline.health, at):
        if alert.happening == "lasts" and alert.alarm.slug in PAGED and subjects is None:
            continue  # the task that meets it again repeats it
        ctx.progress(f"{alert.title}: {alert.alarm.message}; see {alert.runbook}")
        delivery = deliver(alert)
        failed.update(dict.fromkeys(delivery.failures))
        if delivery.taken or not delivery.failures:
            _note_sent(ctx, alert)
    _log_undelivered(ctx, failed)
    return tuple(failed)


def _note_sent(ctx: Context, alert: Alert) -> None:
    level: Level = "info" if alert.happening == "closed" else _EVENT_LEVELS[alert.level]
    for alarm in alert.alarms:
        ctx.ledger.health.note_alert_sent(alarm.number, at=alert.at)
        details = {**alarm.numbers, "happening": alert.happening, "channels": list(alert.channels)}
        message = f"{alert.happening}: {alarm.message}"
        ctx.ledger.events.add(ctx.name, slug=alarm.slug, level=level, message=message, details=details)


def _log_undelivered(ctx: Context, failures: Iterable[str]) -> None:
    for failure in failures:
        ctx.progress(with_runbook(f"[alert-undelivered] {failure}", "alert-undelivered"))


def compared(ctx: Context, oids: Collection[int], deliver: Deliver | None) -> None:
    """Bring the alarms of tables that were compared or merged up to date, by what the ledger knows now."""
    wanted = frozenset(oids)
    tables = [table for table in ctx.ledger.verifications.tables(ctx.name) if table.oid in wanted]
    facts = HealthInput(pipeline=ctx.pipeline, at=datetime.now(UTC), verified=tables)
    found = [finding for rule in COMPARED for finding in rule(facts)]
    subjects = frozenset(f"{table.schema}.{table.name}" for table in tables)
    reconcile(ctx, found, deliver, slugs=frozenset().union(*COMPARED.values()), subjects=subjects, at=facts.at)


def page(ctx: Context, error: PenstockError, task: str, deliver: Deliver) -> None:
    """Open the alarm of an error that `task` met, and send it if that is due.

    The alert is sent also if the ledger cannot record it.
    """
    finding = Finding(error.slug, task, "critical", error.message, _NEXT)
    try:
        if not (isinstance(error, SourceError) and is_source_alerted(ctx, error.slug)):
            reconcile(ctx, [finding], deliver, slugs=PAGED, subjects={task}, judged=())
    except LedgerError as unknown:
        ctx.progress(f"the ledger cannot record who gets this alert: {unknown}")
        alert = unrecorded(ctx.name, finding, ctx.pipeline.health, datetime.now(UTC))
        _log_undelivered(ctx, deliver(alert).failures)


def task_succeeded(ctx: Context, task: str, deliver: Deliver) -> None:
    """Close the alarms that `task` has opened, and send their end: it has succeeded."""
    try:
        reconcile(ctx, (), deliver, slugs=PAGED, subjects={task})
    except LedgerError as unknown:  # the task itself has succeeded; its next success closes them
        if unknown.slug not in UNKNOWN:  # before the first bootstrap there is nothing to close
            ctx.progress(f"the ledger cannot record that {task} has succeeded: {unknown}")


def close_paged(ctx: Context) -> bool:
    """Close the alarms of all tasks, for a person says that they are fixed; return whether there were any.

    Slot health sends their end. What is still there opens them again.
    """
    return ctx.ledger.health.reconcile_alarms(ctx.name, (), judged=PAGED, at=datetime.now(UTC)) > 0


def is_source_alerted(ctx: Context, error: str | None = None) -> bool:
    """Return whether slot health has sent an alert that the source cannot be asked, for this error if one is named; raises LedgerError."""
    return any(
        each.slug == "source-unreachable"
        and error in (None, each.numbers.get("error"))
        and each.closed_at is None
        and each.last_notified_at is not None
        for each in ctx.ledger.health.alarms(ctx.name)
    )
