"""The columns of a mirror: the source's in their order, then `_misfits`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import LakeError
from penstock.shapes.mirror_column import MirrorColumn, reserved
from penstock.values.lake_types import MISFITS_COLUMN, TYPES

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


def columns_stamp(columns: Sequence[MirrorColumn]) -> str:
    """Return a short text that is another one for every other set of columns that a mirror can have."""
    known = [(each.attnum, each.name, each.lake_type, each.key, each.dropped, each.generation) for each in columns]
    return hashlib.blake2b(repr(known).encode(), digest_size=8).hexdigest()


MISFITS = LakeColumn(MISFITS_COLUMN, MISFITS_TYPE)


def lake_column(column: MirrorColumn) -> LakeColumn:
    """Return the lake's column for a source column."""
    return LakeColumn(column.name, column.lake_type)


def mirror_columns(columns: Sequence[MirrorColumn]) -> tuple[LakeColumn, ...]:
    """Return the columns of the mirror of these source columns; raises LakeError("schema-change") on a reserved name."""
    if clash := reserved(column.name for column in columns):
        raise LakeError(
            "schema-change",
            f"expected no source column named {clash}, which the lake's tables keep for themselves; "
            "rename it at the source or leave the table out",
        )
    return (*map(lake_column, columns), MISFITS)
