"""Assets: what DAGs wake each other by, and what they tell those downstream, with one asset per table of the lake.

An event goes by way of an alias where it is emitted only if there is something to tell. Of changes of tables' shapes the ledger
knows which nobody was told of, so that none is left out when a task dies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

from penstock.config.model import Pipeline
from penstock.flow.context import Context
from penstock.printable import printable

if TYPE_CHECKING:
    from penstock.flow.capture.run import CaptureReport
    from penstock.ledger.events import EventRecord
    from penstock.ledger.records import CutRecord

Name = Literal["landing", "new_tables", "schema", "lake", "changelog"]
"""The assets of every pipeline: changes are landed, tables wait for a copy, tables changed their shape, a cut is published, an interval filled."""
Alias = Literal["landed", "tables_joined", "schema_changed", "tables"]
"""The aliases of the first three, and that of the tables' own assets: which tables a cut changes is known when it is there."""


def asset(pipeline: Pipeline, name: Name) -> Asset:
    """Return an asset, the event by which DAGs wake each other."""
    return Asset(name=f"{pipeline.name}.{name}", uri=f"penstock://{pipeline.name}/{name}", group="penstock")


def alias(pipeline: Pipeline, name: Alias) -> AssetAlias:
    """Return the alias through which an event is emitted only where there is something to tell."""
    return AssetAlias(name=f"{pipeline.name}.{name}", group="penstock")


def table_asset(pipeline: str, schema: str, table: str) -> Asset:
    """Return the asset of one table, by its names at the source; what a URI cannot hold is percent-encoded."""
    schema, table = quote(schema, safe=""), quote(table, safe="")
    return Asset(
        name=f"{pipeline}.lake.{schema}.{table}", uri=f"penstock://{pipeline}/lake/{schema}/{table}", group="penstock"
    )


def tell_of_landing(ctx: Context, ti: Any, outlet_events: Any, report: CaptureReport) -> None:
    """Tell Airflow of what the running task has landed: lineage, and where there are changes the event that wakes the merge."""
    from penstock.orchestration import lineage

    lineage.captured(ctx, ti, report)
    if report.changes:
        extra = {"upto": str(report.upto), "changes": report.changes}
        outlet_events[alias(ctx.pipeline, "landed")].add(asset(ctx.pipeline, "landing"), extra=extra)


def tell_of_cut(ctx: Context, context: Any, cut: CutRecord, *, measured: bool = True) -> None:
    """Tell Airflow of a cut that the running task has published: numbers for its metrics, if `measured`, events of tables, and lineage."""
    from penstock.orchestration import lineage
    from penstock.orchestration.notifications import send_cut

    moved = ctx.ledger.merges.table_work(ctx.name, attempt=cut.attempt)
    if measured:
        send_cut(ctx.name, cut, moved)
    for table in moved:
        extra = {"cut": str(cut.lsn), "rows": table.rows, **table.changes}
        changed = table_asset(ctx.name, table.schema, table.name)
        context["outlet_events"][alias(ctx.pipeline, "tables")].add(changed, extra=extra)
    lineage.published(ctx, context["ti"], cut, moved)


def tell_of_schema(ctx: Context, outlet_events: Any) -> None:
    """Tell of every change that nobody was told of; a channel that does not take it is named in the log."""
    from penstock.orchestration.notifications import links, send_info

    pipeline, changes = ctx.pipeline, ctx.ledger.events.unannounced(ctx.name, "schema-followed")
    if not changes:
        return
    listed = [
        {"table": change.table_name, "what": change.message, "at": change.at.isoformat(), **change.details}
        for change in changes
    ]
    outlet_events[alias(pipeline, "schema_changed")].add(asset(pipeline, "schema"), extra={"changes": listed})
    said = [printable(f"{change.table_name}: {change.message}") for change in changes]
    runbook = links(pipeline.health).runbook("schema-followed")
    text = "\n".join([*said, "level: info", f"runbook: {runbook}"])
    for failure in send_info(pipeline, _title(ctx.name, changes), text).failures:
        ctx.progress(failure)
    ctx.ledger.events.note_announced(ctx.name, [change.number for change in changes])


def _title(name: str, changes: list[EventRecord]) -> str:
    tables = sorted({change.table_name or "" for change in changes})
    some = ", ".join(tables[:3]) + (f" and {len(tables) - 3} more" if len(tables) > 3 else "")
    return printable(f"[penstock] info: schema-followed {some} ({name})")
