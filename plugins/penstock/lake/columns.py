"""The columns of a mirror, the source's in their order, then `_misfits`; and how a table becomes what the plan asks for.

Columns are renamed, widened, dropped and added, each as metadata alone. One is known by its number at the source (attnum) and its
generation, which the table keeps per field id in a property of its own; a table that has just been made has none yet, and is matched
by names.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import LakeError
from penstock.shapes.mirror_column import MirrorColumn, reserved
from penstock.values.lake_types import MISFITS_COLUMN, TYPES, holds

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


Number = tuple[int, int]
"""A column's attnum and its generation."""

DROPPED_NOTE = "dropped at the source: rows written since then have NULL"


@dataclass(frozen=True, slots=True)
class LakeField:
    """Describe a top-level field of a lake table: its Iceberg id, its name, and its type as Spark SQL writes it."""

    id: int
    name: str
    type: str
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Evolution:
    """Say what changes: names to drop, from and to which name, the new types by (new) name, columns to add and to describe."""

    deleted: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    widened: tuple[tuple[str, str], ...] = ()
    added: tuple[MirrorColumn, ...] = ()
    noted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deleted or self.renamed or self.widened or self.added or self.noted)


def evolution(
    columns: Sequence[MirrorColumn], fields: Sequence[LakeField], numbers: Mapping[int, Number] | None
) -> Evolution:
    """Compare the plan's columns with the table's fields; `numbers` are the source's by field id, if the table has them.

    Raises LakeError("schema-change") on a difference that metadata cannot bring: another type, or a field of nobody's.
    """
    types = {column.name: column.type for column in mirror_columns(columns)}
    there, misfits = [each for each in fields if each.name != MISFITS_COLUMN], len(fields)
    found, strange = _matched(columns, there, numbers)
    wrong = [f"{each.name} is in the lake but not in the source" for each in strange]
    wrong += [
        f"{field.name} has type {field.type} in the lake and maps to {types[column.name]} now"
        for column in columns
        if (field := found.get(_number(column))) and not holds(types[column.name], field.type)
    ]
    added = tuple(column for column in columns if _number(column) not in found)
    if len(there) == misfits:
        wrong.append(f"{MISFITS_COLUMN} is missing in the lake")
    if wrong:
        raise LakeError(
            "schema-change",
            f"expected the lake table to have the source's columns, or such as it can be given; got: {'; '.join(wrong)}; "
            "copy the table again",
        )
    kept = {field.id for field in found.values()}
    pairs = [(found[_number(column)], column) for column in columns if _number(column) in found]
    return Evolution(
        deleted=tuple(each.name for each in there if each.id not in kept),
        renamed=tuple((field.name, column.name) for field, column in pairs if field.name != column.name),
        widened=tuple((column.name, types[column.name]) for field, column in pairs if field.type != types[column.name]),
        added=added,
        noted=tuple(column.name for field, column in pairs if column.dropped and field.doc != DROPPED_NOTE),
    )


def _matched(
    columns: Sequence[MirrorColumn], fields: Sequence[LakeField], numbers: Mapping[int, Number] | None
) -> tuple[dict[Number, LakeField], list[LakeField]]:
    """Return the fields by the source's number, and those that are nobody's."""
    if numbers is None:
        by_name = {column.name: _number(column) for column in columns}
        found = {by_name[field.name]: field for field in fields if field.name in by_name}
        return found, [field for field in fields if field.name not in by_name]
    wanted = set(map(_number, columns))
    found = {numbers[field.id]: field for field in fields if numbers.get(field.id) in wanted}
    return found, [field for field in fields if field.id not in numbers]


def numbers_text(columns: Sequence[MirrorColumn], ids: Mapping[str, int]) -> str:
    """Return the text of the property that says which field is which of the source's columns; `ids` are those by name."""
    numbers = {
        str(ids[column.name]): [column.attnum, column.generation] if column.generation else column.attnum
        for column in columns
    }
    return json.dumps(numbers, separators=(",", ":"))


def numbers_of(text: str | None) -> dict[int, Number] | None:
    """Read that text."""
    if text is None:
        return None
    return {int(id_): tuple(n) if isinstance(n, list) else (n, 0) for id_, n in json.loads(text).items()}


def _number(column: MirrorColumn) -> Number:
    return column.attnum, column.generation


_NAMES = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
    "time": "bigint",
}
_FIXED = re.compile(r"fixed\[\d+\]")


def lake_type(type_: Any) -> str:
    """Return the name of a type. Source: Iceberg specification, "Schemas" (JSON), and Iceberg's "Spark Type Conversion"."""
    if isinstance(type_, str):
        if _FIXED.fullmatch(type_):
            return "binary"
        return _NAMES.get(type_, type_.replace(" ", ""))
    if type_["type"] == "list":
        return f"array<{lake_type(type_['element'])}>"
    if type_["type"] == "map":
        return f"map<{lake_type(type_['key'])},{lake_type(type_['value'])}>"
    inner = ",".join(f"{field['name']}:{lake_type(field['type'])}" for field in type_["fields"])
    return f"struct<{inner}>"
