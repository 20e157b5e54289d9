"""Who watches slot health: a capture, which runs more often, tells of a slot health that is paused or silent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from penstock.flow.context import Context
from penstock.flow.health.act import send_alerts, settle
from penstock.flow.health.alerts import Deliver, alerts
from penstock.flow.health.input import DagState, Standing
from penstock.flow.health.place_rules import watched

SLUG = "slot-unwatched"


def watch_the_watcher(ctx: Context, dags: Mapping[str, DagState], deliver: Deliver) -> None:
    """Open or close the alarm of a slot health that does not run, and send it; raises LedgerError."""
    at = datetime.now(UTC)
    with ctx.ledger.session():
        late, alarms = ctx.ledger.health.late_work(ctx.name), ctx.ledger.health.alarms(ctx.name)
        now = Standing(ctx.pipeline, at, late=late, alarms=alarms, dags=dags)
        settle(ctx, list(watched(now)), now, {SLUG})
        ours = [alarm for alarm in ctx.ledger.health.alarms(ctx.name) if alarm.slug == SLUG]
        for failure in send_alerts(ctx, alerts(ctx.name, ours, ctx.pipeline.health, at), deliver):
            ctx.progress(f"[alert-undelivered] {failure}")
