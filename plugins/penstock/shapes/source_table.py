"""A source table as its catalog describes it, and its shape: what the stream does not announce a change of. Pure.

A shape is equal to itself after a way through JSON, so that the ledger can keep it and the next window can compare. Beside values it
has the versions of the catalog's own rows, which show also what was changed and changed back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from penstock.codec import JsonForm
from penstock.shapes.partition_bounds import Bound
from penstock.values.pgtype import PgType

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


@dataclass(frozen=True, slots=True)
class TableColumn:
    """Describe one column of a table, at the source and in the lake.

    `attnum` says which of the source's columns it is, whatever that is called. `key` marks those that identify a row. `missing_text` is
    the server's text of the value that rows show which are older than the column (its fast default), None for NULL. `dimensions` are
    those that an array is declared with, which the server does not insist on. `as_text`: the pipeline file chooses text for it in the lake.
    """

    name: str
    attnum: int
    type: PgType
    key: bool = False
    missing_text: str | None = None
    dimensions: int = 0
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class SourceColumn(TableColumn):
    """Describe one column that the stream carries.

    `generated` is `''`, `s` (stored) or `v` (virtual); `identity` is `''`, `a` (always) or `d` (by default). `version`
    is that of its catalog row: equal or not, without an order. `names_objects` is the type, its own or one within, whose text
    is the name of another object, None where the value alone makes its text. `parts` are the oids of the type and all within it.
    """

    not_null: bool = False
    generated: str = ""
    identity: str = ""
    version: str = ""
    names_objects: str | None = None
    parts: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(LeafShape):
    """Describe one relation that holds rows, with what a look alone asks for.

    `kind` is `r` or `f` (foreign: its rows are elsewhere). `ranged`: whether it can be read by ranges of heap blocks. `changed_by` is
    the 32-bit id of the transaction that wrote its `pg_class` row. `attached` has each ATTACH in its chain, none for a partition by
    birth: rows that it had before were never sent. `missing` has the `missing_text` of its columns by name.
    """

    kind: str
    blocks: int
    bytes: int
    ranged: bool
    changed_by: int = 0
    attached: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable(Described):
    """Describe one table that is or may be published.

    `columns` are those that the stream carries, in attnum order. `key` names the columns that identify a row: the replica identity's,
    under `f` the primary key's, or none. `late_key`: there would be one, but the server enforces it late, also if in one partition
    only, and two rows may have it meanwhile. `row_filter` is the publication's in SQL, only where it was asked for. `part_names` are the
    names of types by their oids.
    """

    oid: int
    key: tuple[str, ...]
    columns: tuple[SourceColumn, ...]
    leaves: tuple[Leaf, ...]
    part_names: Mapping[int, str] = field(default_factory=dict)
    row_filter: str | None = None
    late_key: bool = False

    @property
    def changes_silently(self) -> bool:
        """Return whether rows can come and go without the stream. A table that is published by name cannot be set unlogged."""
        return self.kind == "p" or not any(each.startswith("table ") for each in self.membership)

    @property
    def bytes(self) -> int:
        """Sum the heap bytes of all leaves, when they were asked for."""
        return sum(leaf.bytes for leaf in self.leaves)

    @property
    def where(self) -> str | None:
        """Return the condition under which a row is published, in SQL, or None for all rows."""
        if self.filter is not None and self.row_filter is None:
            raise AssertionError(f"the row filter of {self.qualified} was not asked for")
        return self.row_filter

    @property
    def shape(self) -> Shape:
        """Return what must stay the same between two windows, or else be noticed."""
        return Shape(
            **fields_of(Described, self),
            columns={each.attnum: (each.name, each.type.oid, each.type.typmod) for each in self.columns},
            versions={each.attnum: each.version for each in self.columns},
            key=tuple(each.attnum for each in self.columns if each.key),
            leaves={leaf.oid: LeafShape(**fields_of(LeafShape, leaf)) for leaf in self.leaves},
        )


def fields_of(kind: type[Any], record: object) -> dict[str, Any]:
    """Return the fields of a record that another kind of records has, too."""
    return {each.name: getattr(record, each.name) for each in fields(kind)}
