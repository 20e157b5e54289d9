"""Tell of changes of tables' shapes: an event of the pipeline's asset `schema`, and a notice on the channels that ask for it.

The ledger knows of which changes nobody was told, so that none is left out when a task dies.
"""

from __future__ import annotations

from typing import Any

from penstock.config.model import Pipeline
from penstock.flow.context import Context
from penstock.ledger.records import UntoldRecord
from penstock.orchestration.dag_defaults import schema_alias, schema_asset
from penstock.orchestration.notifications import links, send
from penstock.printable import printable


def tell(ctx: Context, pipeline: Pipeline, outlet_events: Any) -> None:
    """Tell of every change that nobody was told of; a channel that does not take it is named in the log."""
    changes = ctx.ledger.events.untold(ctx.name, "schema-followed")
    if not changes:
        return
    listed = [
        {"table": change.table_name, "what": change.message, "at": change.at.isoformat(), **change.details}
        for change in changes
    ]
    outlet_events[schema_alias(pipeline)].add(schema_asset(pipeline), extra={"changes": listed})
    if channels := tuple(pipeline.health.info.channels):
        for failure in send(channels, _title(ctx.name, changes), _text(ctx, pipeline, changes), "info").failures:
            ctx.progress(failure)
    ctx.ledger.events.note_told(ctx.name, [change.number for change in changes])


def _title(name: str, changes: list[UntoldRecord]) -> str:
    tables = sorted({change.table_name for change in changes})
    some = ", ".join(tables[:3]) + (f" and {len(tables) - 3} more" if len(tables) > 3 else "")
    return printable(f"[penstock] info: schema-followed {some} ({name})")


def _text(ctx: Context, pipeline: Pipeline, changes: list[UntoldRecord]) -> str:
    said = [printable(f"{change.table_name}: {change.message}") for change in changes]
    to = links(pipeline.health)
    more = ("level: info", f"runbook: {to.runbook('schema-followed')}", f"page: {to.page(ctx.name)}")
    return "\n".join([*said, *more])
