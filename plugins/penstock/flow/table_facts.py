"""A source table as the ledger keeps it."""

from __future__ import annotations

from penstock.flow.context import Context
from penstock.lake.mirror_column import MirrorColumn
from penstock.ledger.records import ColumnLook, RebuildRecord, TableFacts, TableRecord
from penstock.source.tables import SourceColumn, SourceTable


def table_facts(ctx: Context, table: SourceTable) -> TableFacts:
    """Return a source table as the ledger keeps it."""
    return TableFacts(
        oid=table.oid,
        schema=table.schema,
        name=table.name,
        target=ctx.pipeline.target(table.schema, table.name),
        identity=table.identity,
        columns=tuple(map(column_plan, table.columns)),
        catalog_digest=table.digest(),
    )


def column_look(table: SourceTable) -> ColumnLook:
    """Return what a look at the catalog has found of a table's published columns."""
    states = {column.attnum: (column.name, column.type.oid, column.type.typmod) for column in table.columns}
    return ColumnLook(table.attnums, states)


def facts_of(record: TableRecord | RebuildRecord) -> TableFacts:
    """Return what the ledger knows of a table in the form in which it takes it."""
    return TableFacts(
        record.oid, record.schema, record.name, record.target, record.identity, record.columns, record.catalog_digest
    )


def column_plan(column: SourceColumn) -> MirrorColumn:
    """Return a source column as merge plans name it."""
    return MirrorColumn(column.name, column.attnum, column.type, column.key, column.missing_text)
