"""What a column of a mirrored table is, its type and what older rows show in it; and what becomes of it when the source's changes. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.shapes.source_table import SourceColumn, SourceTable, TableColumn, fields_of
from penstock.values.lake_types import MISFITS_COLUMN, STRING, holds, innermost, lake_type_of
from penstock.values.type_change import sent_as_real, widened_real

# Iceberg computes columns of these names itself, and Spark can neither read nor change a table that has one of its own.
_COMPUTED = frozenset(
    {"_file", "_pos", "_partition", "_deleted", "_spec_id", "_row_id", "_last_updated_sequence_number"}
)


@dataclass(frozen=True, slots=True)
class MirrorColumn(TableColumn):
    """Describe one column of a target table, under the field's name in the lake.

    That is the source's name where the column is there. A `dropped` one is not at the source any more: the lake keeps what it held, and
    rows written since have NULL. `generation` counts the types that its field in the lake could not become: each began another field of
    the same name.
    """

    dropped: bool = False
    generation: int = 0

    @property
    def lake_type(self) -> str:
        """Return the lake's type for it, as Spark SQL writes it."""
        return STRING if self.as_text else lake_type_of(self.type)


def present(columns: Iterable[MirrorColumn]) -> tuple[MirrorColumn, ...]:
    """Return the columns that the source has."""
    return tuple(column for column in columns if not column.dropped)


def reserved(names: Iterable[str]) -> str | None:
    """Return the first name that a mirror cannot have as a column of the source's, or None.

    Source: Iceberg specification, "Reserved Field IDs".
    """
    return next((name for name in names if name in _COMPUTED or name.lower() == MISFITS_COLUMN), None)


def column_plan(column: SourceColumn) -> MirrorColumn:
    """Return a source column as merge plans name it."""
    return MirrorColumn(**fields_of(TableColumn, column))


def followed(columns: Sequence[MirrorColumn], now: SourceTable, *, keep_dropped: bool) -> tuple[MirrorColumn, ...]:
    """Return a table's columns after those of the source became what they are now; a dropped one may be kept."""
    there = {column.attnum: column for column in now.columns}
    after = list[MirrorColumn]()
    for column in columns:
        found = there.pop(column.attnum, None)
        if column.dropped:
            after.append(column)
        elif found is not None:
            after.append(_as_found(column, found))
        elif keep_dropped:
            after.append(replace(column, dropped=True, missing_text=None, key=False))
    return _with_free_names([*after, *map(column_plan, there.values())])


def refilled(
    columns: Sequence[MirrorColumn], before: Sequence[MirrorColumn], read: Collection[int]
) -> tuple[MirrorColumn, ...]:
    """Return a table's columns when all values of some were read again: one whose field cannot become the new type is another field."""
    known = {column.attnum: column for column in before}
    return tuple(_refilled(column, known.get(column.attnum)) if column.attnum in read else column for column in columns)


def _refilled(column: MirrorColumn, before: MirrorColumn | None) -> MirrorColumn:
    generation = column.generation
    if before is not None:
        generation += not holds(column.lake_type, before.lake_type)
    return replace(column, missing_text=None, generation=generation)


def _as_found(column: MirrorColumn, found: SourceColumn) -> MirrorColumn:
    """Return a column as the catalog has it now; whether it is text in the lake is decided by a copy alone."""
    now, missing_text = column_plan(found), _missing_text(column, found)
    return replace(now, missing_text=missing_text, as_text=column.as_text, generation=column.generation)


def _missing_text(column: MirrorColumn, found: SourceColumn) -> str | None:
    """Return what rows of before the column show under its present type."""
    text = column.missing_text
    return widened_real(text) if text and sent_as_real(innermost(column.type).oid, found.type) else text


def _with_free_names(columns: Sequence[MirrorColumn]) -> tuple[MirrorColumn, ...]:
    """Give a dropped column another name in the lake where a new one has taken its name."""
    taken = {column.name for column in columns if not column.dropped}
    named = list[MirrorColumn]()
    for column in columns:
        name = _free(column, taken) if column.dropped else column.name
        taken |= {name}
        named.append(replace(column, name=name))
    return tuple(named)


def _free(column: MirrorColumn, taken: Collection[str]) -> str:
    name, wanted = column.name, f"{column.name}__dropped_{column.attnum}"
    while name in taken:
        name, wanted = wanted, f"{wanted}_"
    return name
