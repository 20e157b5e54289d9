"""Which columns the pipeline file has as text in the lake: arrays, of which the lake's type holds one dimension. Pure."""

from __future__ import annotations

from dataclasses import replace

from penstock.config.model import Pipeline
from penstock.shapes.source_table import SourceTable
from penstock.source.patterns import chosen_by
from penstock.values.lake_types import mapping
from penstock.values.pgtype import PgType
from penstock.values.type_table import element_type


def as_chosen(pipeline: Pipeline, table: SourceTable) -> SourceTable:
    """Return a table whose columns say whether they are text in the lake."""
    if not pipeline.tables.columns:
        return table
    columns = tuple(
        replace(column, as_text=is_text(pipeline, (table.schema, table.name), column.name, column.type))
        for column in table.columns
    )
    return replace(table, columns=columns)


def is_text(pipeline: Pipeline, table: tuple[str, str], column: str, type: PgType) -> bool:
    """Return whether text is chosen for a column of this name and type."""
    return is_array(type) and any(
        column in each.columns and chosen_by(each)(*table) for each in pipeline.tables.columns
    )


def is_array(type: PgType) -> bool:
    """Return whether the lake has a type as an array."""
    return element_type(mapping(type).lake_type) is not None
