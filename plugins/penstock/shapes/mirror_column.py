"""What a column of a mirrored table is: its name and number at the source, its type, and what older rows show in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.values.lake_types import MISFITS_COLUMN, STRING, mapping
from penstock.values.pgtype import PgType

# Iceberg computes columns of these names itself, and Spark can neither read nor change a table that has one of its own.
_COMPUTED = frozenset(
    {"_file", "_pos", "_partition", "_deleted", "_spec_id", "_row_id", "_last_updated_sequence_number"}
)


@dataclass(frozen=True, slots=True)
class MirrorColumn:
    """Describe one column of a target table.

    `name` is the field's name in the lake, and at the source where the column is there; `attnum` says which of the
    source's columns it is, whatever that is called. `key` marks the replica identity. `missing_text` is PostgreSQL's text
    of the value that rows written before the column existed show (its fast default), or None for NULL. A `dropped` one is
    not at the source any more: the lake keeps what it held, and rows written since have NULL. `generation` counts the types that
    its field in the lake could not become: each began another field of the same name. `dimensions` are those that an array is
    declared with. `as_text`: text was chosen for it.
    """

    name: str
    attnum: int
    type: PgType
    key: bool = False
    missing_text: str | None = None
    dropped: bool = False
    generation: int = 0
    dimensions: int = 0
    as_text: bool = False

    @property
    def lake_type(self) -> str:
        """Return the lake's type for it, as Spark SQL writes it."""
        return STRING if self.as_text else mapping(self.type).lake_type


def present(columns: Iterable[MirrorColumn]) -> tuple[MirrorColumn, ...]:
    """Return the columns that the source has."""
    return tuple(column for column in columns if not column.dropped)


def reserved(names: Iterable[str]) -> str | None:
    """Return the first name that a mirror cannot have as a column of the source's, or None.

    Source: Iceberg specification, "Reserved Field IDs".
    """
    return next((name for name in names if name in _COMPUTED or name.lower() == MISFITS_COLUMN), None)
