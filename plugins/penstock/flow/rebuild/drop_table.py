"""Take a lake table's name away; its files are deleted by maintenance, which first learns where they lie."""

from __future__ import annotations

from penstock.compare.lake_reader import Target, lake_reader, sql_catalog
from penstock.flow.context import Context
from penstock.jobs.maintenance_plan import OldTable
from penstock.jobs.pointers import place_of


def discard(ctx: Context, target: Target) -> None:
    """Drop a table from the catalog, if it is there; raises LakeError."""
    with lake_reader(ctx.pipeline.lake.catalog, sql_catalog(ctx.catalog)) as lake:
        found = lake.table(target)
        if found is not None:
            ctx.ledger.maintenance.see_old_tables(ctx.name, [OldTable(*place_of(target), found.folder)])
            lake.drop(target)
