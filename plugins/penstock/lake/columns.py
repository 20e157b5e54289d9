"""The columns of a mirror: what the plan asks for, compared with what the lake table has.

A mirror holds the source's columns in their order, then `_misfits`. The stream can add a column at the end; any
other difference is a change that the stream does not carry, and pauses the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.errors import LakeError
from penstock.lake.mirror_column import MirrorColumn
from penstock.values.lake_types import mapping
from penstock.values.misfits import MISFITS_COLUMN
from penstock.values.type_table import TYPES

MISFITS_TYPE = "map<string,string>"

_ALWAYS_FIT = frozenset(each.name for each in TYPES if each.always_fits)


@dataclass(frozen=True, slots=True)
class LakeColumn:
    """Name one column of a lake table and its type, as Spark SQL writes it."""

    name: str
    type: str

    @property
    def always_fits(self) -> bool:
        """Return whether no source value can misfit this column's type."""
        return self.type in _ALWAYS_FIT


# Iceberg computes columns of these names itself, and Spark can neither read nor change a table that has one of its own.
_COMPUTED = frozenset(
    {"_file", "_pos", "_partition", "_deleted", "_spec_id", "_row_id", "_last_updated_sequence_number"}
)


def reserved(names: Iterable[str]) -> str | None:
    """Return the first name that a mirror cannot have as a column of the source's, or None.

    Source: Iceberg specification, "Reserved Field IDs".
    """
    return next((name for name in names if name in _COMPUTED or name.lower() == MISFITS_COLUMN), None)


MISFITS = LakeColumn(MISFITS_COLUMN, MISFITS_TYPE)


def lake_column(column: MirrorColumn) -> LakeColumn:
    """Return the lake's column for a source column."""
    return LakeColumn(column.name, mapping(column.type).lake_type)


def mirror_columns(columns: Sequence[MirrorColumn]) -> tuple[LakeColumn, ...]:
    """Return the columns of the mirror of these source columns; raises LakeError("schema-change") on a reserved name."""
    if clash := reserved(column.name for column in columns):
        raise LakeError(
            "schema-change",
            f"expected no source column named {clash}, which the lake's tables keep for themselves; "
            "rename it at the source or leave the table out",
        )
    return (*map(lake_column, columns), MISFITS)


def additions(columns: Sequence[MirrorColumn], present: Sequence[LakeColumn]) -> tuple[MirrorColumn, ...]:
    """Return the source columns that the table lacks, in order.

    Raises LakeError("schema-change") on any other difference: a column that the source no longer has, another
    type, or a new column that is part of the key.
    """
    wanted = {column.name: column for column in mirror_columns(columns)}
    there = {column.name: column for column in present}
    wrong = [f"{name} is in the lake but not in the source" for name in there if name not in wanted]
    wrong += [
        f"{name} has type {there[name].type} in the lake and maps to {column.type} now"
        for name, column in wanted.items()
        if name in there and there[name].type != column.type
    ]
    new = tuple(column for column in columns if column.name not in there)
    wrong += [f"{column.name} is new and part of the key" for column in new if column.key]
    if MISFITS_COLUMN not in there:
        wrong.append(f"{MISFITS_COLUMN} is missing in the lake")
    if wrong:
        raise LakeError(
            "schema-change",
            f"expected the lake table to have the source's columns, except new ones; got: {'; '.join(wrong)}; "
            "copy the table again",
        )
    return new
