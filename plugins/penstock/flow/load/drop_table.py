"""Take a lake table's name away; its files are deleted by maintenance, which first learns where they lie."""

from __future__ import annotations

from penstock.compare.lake_reader import Target, lake_reader, sql_catalog
from penstock.flow.context import Context
from penstock.jobs.maintenance_plan import OldTable
from penstock.jobs.pointers import place_of
from penstock.lake.names import folder_of
from penstock.ledger import iceberg_pointers


def discard(ctx: Context, target: Target) -> None:
    """Drop a table from the catalog, if it is there, without reading it: its files may be gone. Raises LakeError."""
    place = place_of(target)
    shown = iceberg_pointers.shown(ctx.catalog, ctx.pipeline.lake.catalog, [place])
    if place in shown:
        ctx.ledger.maintenance.see_old_tables(ctx.name, [OldTable(*place, folder_of(shown[place]))])
        with lake_reader(ctx.pipeline.lake.catalog, sql_catalog(ctx.catalog)) as lake:
            lake.drop(target)
