"""A source table as the ledger keeps it."""

from __future__ import annotations

from penstock.ledger.relation_records import ColumnLook
from penstock.ledger.table_records import RebuildRecord, TableFacts, TableRecord
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.source_table import SourceColumn, SourceTable


def column_look(table: SourceTable) -> ColumnLook:
    """Return what a look at the catalog has found of a table's published columns."""
    states = {column.attnum: (column.name, column.type.oid, column.type.typmod) for column in table.columns}
    key = tuple(column.attnum for column in table.columns if column.key)
    return ColumnLook(table.attnums, states, key=key, key_index=table.key_index, hidden=table.hidden_attnums)


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
