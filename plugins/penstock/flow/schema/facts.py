"""A source table as the ledger takes it, under the names that the pipeline file gives."""

from __future__ import annotations

from dataclasses import replace

from penstock.flow.context import Context
from penstock.ledger.table_records import TableRecord
from penstock.shapes.accepted import Accepted
from penstock.shapes.mirror_column import column_plan
from penstock.shapes.source_table import SourceTable
from penstock.shapes.table_facts import TableFacts
from penstock.source import types


def table_facts(ctx: Context, table: SourceTable) -> TableFacts:
    """Return a source table as the ledger keeps it."""
    return TableFacts(
        oid=table.oid,
        schema=table.schema,
        name=table.name,
        target=_kept_target(ctx, table) or ctx.pipeline.target(table.schema, table.name),
        identity=table.identity,
        columns=tuple(map(column_plan, types.as_chosen(ctx.pipeline, table).columns)),
        accepted=Accepted(table.shape),
    )


def _kept_target(ctx: Context, table: SourceTable) -> tuple[str, ...] | None:
    """Return the lake's name of a table that is known, where names are kept."""
    if ctx.pipeline.lake.on_renamed_table != "keep":
        return None
    return ctx.ledger.tables.target(ctx.name, table.oid)


def renamed(ctx: Context, known: TableRecord, table: SourceTable) -> TableFacts:
    """Return what the ledger knows of a table, with the source's name of it and what follows for the lake's.

    A table that the lake does not have yet is called by its new name at once.
    """
    facts, target = known.facts, ctx.pipeline.target(table.schema, table.name)
    named = replace(facts, schema=table.schema, name=table.name)
    if (known.schema, known.name) == (table.schema, table.name) or ctx.pipeline.lake.on_renamed_table == "keep":
        return named
    if known.state == "new":
        return replace(named, target=target, renamed_to=None)
    return replace(named, renamed_to=None if target == known.target else target)
