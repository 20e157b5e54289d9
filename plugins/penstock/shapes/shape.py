"""What a table looks like by the catalog, as far as the stream does not announce a change of it. Pure.

A shape is equal to itself after a way through JSON, so that the ledger can keep it and the next window can compare. Beside values it
has the versions of the catalog's own rows, which show also what was changed and changed back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from penstock.codec import JsonForm
from penstock.shapes.partition_bounds import Bound

SHAPE_LAYOUT = 5
"""Counted up with each change of what a shape has: the ledger's shapes are then all compared, and replaced."""
ColumnState = tuple[str, int, int]
"""What a column was: its name, its type's oid and its typmod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafShape:
    """Describe one relation that holds rows: a plain table itself, or a partition without partitions.

    `identity` and `key` (sorted) are the relation's own, which decide what old rows the server logs. `file` is its file's number.
    `chain` holds the versions of the `pg_inherits` rows above it. `altered_by` is the 32-bit id of who altered one that may have logged
    less than whole old rows since. `bound` says which rows it can hold, as far as the lake can compare them, with its columns by attnum.
    """

    oid: int
    schema: str
    name: str
    persistence: str
    identity: str
    key: tuple[str, ...]
    file: int
    chain: tuple[str, ...] = ()
    altered_by: int | None = None
    bound: Bound = ()

    @property
    def qualified(self) -> str:
        """Name the relation for a message."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Describe a table as a whole, but for its columns and for the relations that hold its rows.

    `kind` is `r` (plain) or `p` (partitioned). `identity` is `d`, `i`, `f` or `n`; `d` and `i` without a usable index are given as
    `n`. `hidden` names the columns that the stream does not carry (generated, or not in the publication's column list) by attnum, and
    `attnums` counts all that there ever were. `key_index` is the index of the columns that identify a row, 0 for none. `filter` is equal
    as long as the publication's row filter is, None without one. `membership` names what makes the table a member of the publication,
    with other names after it has left and come back. `enums`, `composites` and `part_versions`, the versions of the catalog's rows of
    a type, are by the types' oids.
    """

    schema: str
    name: str
    kind: str
    persistence: str
    file: int
    hidden: Mapping[int, str]
    attnums: int = 0
    identity: str
    key_index: int = 0
    filter: str | None
    membership: tuple[str, ...] = ()
    enums: Mapping[int, tuple[str, ...]]
    composites: Mapping[int, tuple[tuple[str, int, int], ...]]
    part_versions: Mapping[int, tuple[str, ...]]
    parents: tuple[int, ...]

    @property
    def qualified(self) -> str:
        """Name the table for a message."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(Described, JsonForm):
    """Describe one table: what must stay the same between two windows, or else be noticed.

    `columns` are those of the stream, by attnum, and `versions` those of their catalog rows: equal or not, without an order. Whatever
    else changes of a column gives its row another version. `key` are those that identify a row; `leaves` are by oid.
    """

    columns: Mapping[int, ColumnState]
    versions: Mapping[int, str]
    key: tuple[int, ...]
    leaves: Mapping[int, LeafShape]


def fields_of(kind: type[Any], record: object) -> dict[str, Any]:
    """Return the fields of a record that another kind of records has, too."""
    return {each.name: getattr(record, each.name) for each in fields(kind)}
