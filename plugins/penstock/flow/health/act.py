"""Carry out a verdict: record it, drop what may go, open and close alarms, send alerts.

Everything that is done is an event with the numbers that justify it. A slot is dropped only if, in the moment of the
drop, it is still the one that was judged; the pipeline's own only under its lock, so that no capture is at work.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from penstock.conditions import PAGED
from penstock.errors import PenstockError, SourceError
from penstock.flow.context import Context
from penstock.flow.guards import slot_work
from penstock.flow.health.alerts import Alert, Deliver, alerts
from penstock.flow.health.drops import Drop
from penstock.flow.health.findings import Finding
from penstock.flow.health.input import Standing
from penstock.flow.health.judge import Verdict
from penstock.flow.slot_ownership import why_not_ours
from penstock.ledger.records import Level
from penstock.source import health as source
from penstock.source import server_info, session

_EVENT_LEVELS: dict[str, Level] = {"warn": "warning", "critical": "error"}


def act(ctx: Context, verdict: Verdict, deliver: Deliver) -> list[str]:
    """Carry out a verdict on a pipeline that the ledger knows; return what went wrong with the channels.

    Raises LedgerError.
    """
    at, policy = verdict.seen.at, ctx.pipeline.health
    ctx.ledger.health.record_slot_samples(ctx.name, verdict.samples.values())
    if (lake := verdict.seen.now.lake) is not None:
        ctx.ledger.health.record_lake_sample(ctx.name, at=at, as_of=lake.as_of)
    for each in verdict.drops:
        drop(ctx, each)
    settle(ctx, verdict.findings, verdict.seen.now)
    ctx.ledger.health.trim(ctx.name, before=at - timedelta(seconds=policy.keep))
    due = alerts(ctx.name, ctx.ledger.health.alarms(ctx.name), policy, at)
    # the task that meets an error again repeats its alarm; here only what no channel took
    return send_alerts(
        ctx, [each for each in due if each.happening != "lasts" or each.alarm.slug not in PAGED], deliver
    )


def settle(ctx: Context, findings: Sequence[Finding], now: Standing, judged: Collection[str] | None = None) -> None:
    """Open, keep and close alarms, so that the open ones are those of the findings; paged ones are their task's.

    Of alarms that were not `judged` none is closed; left out, all were.
    """
    for each in findings:
        numbers: dict[str, Any] = {**each.numbers, "next": each.next}
        if each.since is not None:
            numbers["since"] = f"{each.since:%F %T} UTC"
        if each.follows:
            numbers["follows"] = list(each.follows)
        ctx.ledger.health.see_alarm(
            ctx.name,
            slug=each.slug,
            subject=each.subject,
            level=each.level,
            message=each.message,
            numbers=numbers,
            at=now.at,
            cause=each.cause,
        )
    found = {(each.slug, each.subject) for each in findings}
    for alarm in now.alarms:
        ours = alarm.slug not in PAGED and (judged is None or alarm.slug in judged)
        if ours and alarm.closed_at is None and (alarm.slug, alarm.subject) not in found:
            ctx.ledger.health.close_alarm(ctx.name, slug=alarm.slug, subject=alarm.subject, at=now.at)


def send_alerts(ctx: Context, due: list[Alert], deliver: Deliver) -> list[str]:
    """Deliver alerts and note each; one that no channel took is due again next time. Return the channels' failures."""
    failed: list[str] = []
    for alert in due:
        ctx.progress(f"{alert.title}: {alert.alarm.message}; see {alert.runbook}")
        delivery = deliver(alert)
        failed += delivery.failures
        if delivery.failures and not delivery.taken:
            continue
        for alarm in alert.alarms:
            ctx.ledger.health.note_alert_sent(alarm.number, at=alert.at)
            details = {**alarm.numbers, "happening": alert.happening, "channels": list(alert.channels)}
            level: Level = "info" if alert.happening == "closed" else _EVENT_LEVELS[alert.level]
            message = f"{alert.happening}: {alarm.message}"
            ctx.ledger.events.add(ctx.name, slug=alarm.slug, level=level, message=message, details=details)
    return list(dict.fromkeys(failed))  # one complaint per channel, however many alerts it refused


def drop(ctx: Context, each: Drop) -> bool:
    """Drop a slot that the policy names, unless it only asks for a dry run; return whether it was dropped."""
    details = {**each.numbers, "slot": each.slot.name, "statement": each.statement}
    if ctx.pipeline.health.dry_run:
        ctx.progress(f"dry run, would run: {each.statement} because {each.reason}")
        return False
    slug = "slot-dropped" if each.own else each.alarm
    try:
        dropped = _drop(ctx, each)
    except PenstockError as error:  # the alarm stays open and is sent; the other slots are still to be looked after
        if not isinstance(error, SourceError) and error.slug != "work-under-way":
            raise
        _not_dropped(ctx, slug, each, error, details)
        return False
    if not dropped:
        _not_dropped(ctx, slug, each, None, details)
        return False
    message = f"dropped slot {each.slot.name}, because {each.reason}; ran: {each.statement}"
    ctx.progress(message)
    ctx.ledger.events.add(ctx.name, slug=slug, level="error", message=message, details=details)
    return True


def _drop(ctx: Context, each: Drop) -> bool:
    with (
        session.connect(ctx.source, what=f"{ctx.name}:health", statement_timeout=30) as conn,
        slot_work(ctx) if each.own else nullcontext(),
    ):
        if each.own and _is_of_another(ctx, conn, each):
            return False
        dropped = source.drop_unmoved(conn, each.slot)
        if dropped and each.own:
            _halt(ctx, each)
        return dropped


def _is_of_another(ctx: Context, conn: session.SourceSession, each: Drop) -> bool:
    """Return whether the pipeline has lost its slot since it was judged: a teardown may have ended in between."""
    record = ctx.ledger.pipelines.get(ctx.name)
    return why_not_ours(record, each.slot, server_info.read(conn)) is not None


def _halt(ctx: Context, each: Drop) -> None:
    ctx.ledger.pipelines.halt(
        ctx.name,
        slug="slot-dropped",
        reason=(
            f"slot health dropped slot {each.slot.name} at {each.slot.confirmed}, because {each.reason}; "
            f"changes since then are lost to the stream: trigger {ctx.name}.recover"
        ),
    )


def _not_dropped(ctx: Context, slug: str, each: Drop, error: PenstockError | None, details: dict[str, Any]) -> None:
    why = error.message if error else "it was taken, moved or replaced between the decision and the drop"
    message = f"did not drop slot {each.slot.name}: {why}"
    ctx.progress(message)
    ctx.ledger.events.add(ctx.name, slug=slug, level="warning", message=message, details=details)
