"""The alarm of a verification: open for a table while what differed in it has not been seen to be equal again.

It says how many rows, which columns and at which position, never a value. Slot health repeats it as it does its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from penstock.flow.context import Context
from penstock.flow.health.act import tell
from penstock.flow.health.alerts import Deliver, alerts
from penstock.flow.health.verified_rule import SLUG, differing
from penstock.ledger.verifications import VerifiedTable


def update(ctx: Context, compared: Sequence[int], deliver: Deliver) -> None:
    """Open, keep or close the alarm of each of these tables, by what the ledger knows now, and tell it."""
    now = datetime.now(UTC)
    tables = [table for table in ctx.ledger.verified_tables(ctx.name) if table.oid in set(compared)]
    for table in tables:
        _settle(ctx, table, now)
    ours = [alarm for alarm in ctx.ledger.alarms(ctx.name) if alarm.slug == SLUG]
    for failure in dict.fromkeys(tell(ctx, alerts(ctx.name, ours, ctx.pipeline.health, now), deliver)):
        ctx.progress(f"[alert-undelivered] {failure} See docs/runbooks/alert-undelivered.md.")


def _settle(ctx: Context, table: VerifiedTable, now: datetime) -> None:
    for finding in differing([table]):
        ctx.ledger.see_alarm(
            ctx.name,
            slug=finding.slug,
            subject=finding.subject,
            level=finding.level,
            message=finding.message,
            numbers={**finding.numbers, "next": finding.next},
            at=now,
        )
    if not table.differs:
        ctx.ledger.close_alarm(ctx.name, slug=SLUG, subject=f"{table.schema}.{table.name}", at=now)
