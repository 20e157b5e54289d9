"""The alarms of tables: one that a verification found to differ or could not read, and one of which changes met other rows.

Each is open until all that is in question has been seen to be equal, or the table was copied since. It says how many rows,
which columns and at which position, never a value. Slot health repeats it as it does its own.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from penstock.conditions import with_runbook
from penstock.flow.context import Context
from penstock.flow.health import conflict_rule, verified_rule
from penstock.flow.health.act import send_alerts
from penstock.flow.health.alerts import Deliver, alerts

_RULES = {
    verified_rule.SLUG: verified_rule.differing,
    verified_rule.UNREADABLE: verified_rule.unreadable,
    conflict_rule.SLUG: conflict_rule.suspected,
}


def update(ctx: Context, oids: Collection[int], deliver: Deliver | None) -> None:
    """Open, keep or close the alarms of these tables, by what the ledger knows now; send alerts, or leave that to slot health."""
    now, wanted = datetime.now(UTC), set(oids)
    tables = [table for table in ctx.ledger.verifications.tables(ctx.name) if table.oid in wanted]
    found = [finding for rule in _RULES.values() for finding in rule(tables)]
    for finding in found:
        ctx.ledger.health.see_alarm(
            ctx.name,
            slug=finding.slug,
            subject=finding.subject,
            level=finding.level,
            message=finding.message,
            numbers={**finding.numbers, "next": finding.next},
            at=now,
        )
    subjects = {f"{table.schema}.{table.name}" for table in tables}
    wrong = {(finding.slug, finding.subject) for finding in found}
    for alarm in ctx.ledger.health.alarms(ctx.name):
        over = alarm.slug in _RULES and alarm.subject in subjects and (alarm.slug, alarm.subject) not in wrong
        if over and alarm.closed_at is None:
            ctx.ledger.health.close_alarm(ctx.name, slug=alarm.slug, subject=alarm.subject, at=now)
    if deliver is None:
        return
    ours = [alarm for alarm in ctx.ledger.health.alarms(ctx.name) if alarm.slug in _RULES]
    for failure in dict.fromkeys(send_alerts(ctx, alerts(ctx.name, ours, ctx.pipeline.health, now), deliver)):
        ctx.progress(with_runbook(f"[alert-undelivered] {failure}", "alert-undelivered"))
