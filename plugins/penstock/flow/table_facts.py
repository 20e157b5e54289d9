"""A source table as the ledger keeps it."""

from __future__ import annotations

from dataclasses import replace

from penstock.flow.context import Context
from penstock.lake.mirror_column import MirrorColumn
from penstock.ledger.relation_records import ColumnLook
from penstock.ledger.table_records import RebuildRecord, TableFacts, TableRecord
from penstock.source import column_types
from penstock.source.tables import SourceColumn, SourceTable


def table_facts(ctx: Context, table: SourceTable) -> TableFacts:
    """Return a source table as the ledger keeps it."""
    return TableFacts(
        oid=table.oid,
        schema=table.schema,
        name=table.name,
        target=_kept_target(ctx, table) or ctx.pipeline.target(table.schema, table.name),
        identity=table.identity,
        columns=tuple(map(column_plan, column_types.as_chosen(ctx.pipeline, table).columns)),
        catalog_digest=table.digest(),
    )


def column_look(table: SourceTable) -> ColumnLook:
    """Return what a look at the catalog has found of a table's published columns."""
    states = {column.attnum: (column.name, column.type.oid, column.type.typmod) for column in table.columns}
    key = tuple(column.attnum for column in table.columns if column.key)
    return ColumnLook(table.attnums, states, key=key, key_index=table.key_index, hidden=table.hidden_attnums)


def _kept_target(ctx: Context, table: SourceTable) -> tuple[str, ...] | None:
    """Return the lake's name of a table that is known, where names are kept."""
    if ctx.pipeline.lake.on_renamed_table != "keep":
        return None
    return ctx.ledger.tables.target(ctx.name, table.oid)


def renamed(ctx: Context, known: TableRecord, table: SourceTable) -> TableFacts:
    """Return what the ledger knows of a table, with the source's name of it and what follows for the lake's.

    A table that the lake does not have yet is called by its new name at once.
    """
    facts, target = facts_of(known), ctx.pipeline.target(table.schema, table.name)
    named = replace(facts, schema=table.schema, name=table.name)
    if (known.schema, known.name) == (table.schema, table.name) or ctx.pipeline.lake.on_renamed_table == "keep":
        return named
    if known.state == "new":
        return replace(named, target=target, renamed_to=None)
    return replace(named, renamed_to=None if target == known.target else target)


def facts_of(record: TableRecord | RebuildRecord) -> TableFacts:
    """Return what the ledger knows of a table in the form in which it takes it."""
    return TableFacts(
        record.oid,
        record.schema,
        record.name,
        record.target,
        record.identity,
        record.columns,
        record.catalog_digest,
        record.renamed_to if isinstance(record, TableRecord) else None,
    )


def column_plan(column: SourceColumn) -> MirrorColumn:
    """Return a source column as merge plans name it."""
    return MirrorColumn(
        column.name,
        column.attnum,
        column.type,
        column.key,
        column.missing_text,
        dimensions=column.dimensions,
        as_text=column.as_text,
    )
