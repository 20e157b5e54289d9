"""One asset per table of the lake: an event when a cut has changed it, for a DAG that waits for this table alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

from penstock.config.model import Pipeline
from penstock.flow.context import Context

if TYPE_CHECKING:
    from penstock.ledger.records import CutRecord


def table_alias(pipeline: Pipeline) -> AssetAlias:
    """Return the alias through which events of the tables are emitted: which tables a cut changes is known when it is there."""
    return AssetAlias(name=f"{pipeline.name}.tables", group="penstock")


def table_asset(pipeline: str, schema: str, table: str) -> Asset:
    """Return the asset of one table, by its names at the source; what a URI cannot hold is percent-encoded."""
    schema, table = quote(schema, safe=""), quote(table, safe="")
    return Asset(
        name=f"{pipeline}.lake.{schema}.{table}", uri=f"penstock://{pipeline}/lake/{schema}/{table}", group="penstock"
    )


def emit(ctx: Context, outlet_events: Any, cut: CutRecord) -> None:
    """Emit an event for every table that a cut has changed."""
    for moved in ctx.ledger.merges.moved(ctx.name, cut.attempt):
        extra = {"cut": str(cut.lsn), "rows": moved.rows, **moved.changes}
        outlet_events[table_alias(ctx.pipeline)].add(table_asset(ctx.name, moved.schema, moved.name), extra=extra)
