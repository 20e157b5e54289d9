"""The rule for tables that stand still: each paused table is an alarm of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.conditions import NEEDS_COPY
from penstock.flow import table_policy
from penstock.flow.health.findings import Finding
from penstock.flow.health.input import Standing
from penstock.ledger.health import StillTable


def paused(now: Standing) -> Iterator[Finding]:
    """Report every table that is paused."""
    for each in now.still:
        if each.state == "paused":
            subject = f"{each.schema}.{each.name}"
            said = f"{subject} is paused by {each.slug}: {each.reason}"
            step = f"its changes are landed, readers keep the last cut; {_way_out(now, each)}"
            yield Finding("table-paused", subject, "warn", said, step, {"reason": each.slug})


def _way_out(now: Standing, table: StillTable) -> str:
    name = now.pipeline.name
    if table.slug not in NEEDS_COPY:
        return f"fix it, then trigger {name}.resume"
    if table_policy.on_change(now.pipeline, table.schema, table.name) == "pause":
        return f"trigger {name}.resync, which copies it again"
    return f"{name}.resync copies it again by itself"
