"""A source table as its catalog describes it: what the stream carries of it, where its rows lie, and its shape. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.shapes import partition_bounds
from penstock.shapes.partition_bounds import Bound
from penstock.shapes.shape import ColumnShape, LeafShape, Shape
from penstock.values.pgtype import PgType


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """Describe one column that the stream carries.

    `missing_text` is the server's text of the value that rows show which are older than the column, None for NULL.
    `generated` is `''`, `s` (stored) or `v` (virtual); `identity` is `''`, `a` (always) or `d` (by default). `version`
    is that of its catalog row: equal or not, without an order. `names_objects` is the type, its own or one within, whose text
    is the name of another object, None where the value alone makes its text. `parts` are the oids of the type and all within it.
    `dimensions` are those that an array is declared with, which the server does not insist on. `as_text`: the pipeline file chooses
    text for it in the lake.
    """

    name: str
    attnum: int
    type: PgType
    not_null: bool = False
    key: bool = False
    missing_text: str | None = None
    has_default: bool = False
    generated: str = ""
    identity: str = ""
    version: str = ""
    names_objects: str | None = None
    parts: frozenset[int] = frozenset()
    dimensions: int = 0
    as_text: bool = False

    @property
    def shape(self) -> ColumnShape:
        """Return what must stay the same of it."""
        return ColumnShape(
            self.attnum,
            self.name,
            self.type.oid,
            self.type.typmod,
            self.not_null,
            self.key,
            self.missing_text is not None,
            self.version,
        )


@dataclass(frozen=True, slots=True)
class Attach:
    """Name an ATTACH by the version of its `pg_inherits` row, its 32-bit transaction id and its command, if that is known."""

    version: str
    xid: int
    cid: int | None


@dataclass(frozen=True, slots=True)
class Leaf:
    """Describe one relation that holds rows: a plain table itself, or a partition without partitions.

    `kind` is `r` or `f` (foreign: its rows are elsewhere); `identity` and `key` are the relation's own, which decide
    what old rows the server logs. `ranged`: whether it can be read by ranges of heap blocks. `changed_by` is the
    32-bit id of the transaction that wrote its `pg_class` row; `has_unique`: whether it has an index that could
    be its identity. `chain` holds the versions of the `pg_inherits` rows above it,
    `attached` each ATTACH among them, none for a partition by birth: rows that it had before were never sent. `bound` says
    which rows it can hold, as far as the lake can compare them. `missing` has the `missing_text` of its columns by name.
    """

    oid: int
    schema: str
    name: str
    kind: str
    persistence: str
    identity: str
    key: tuple[str, ...]
    relfilenode: int
    blocks: int
    bytes: int
    ranged: bool
    changed_by: int = 0
    has_unique: bool = False
    chain: tuple[str, ...] = ()
    attached: tuple[Attach, ...] = ()
    bound: Bound = ()
    missing: tuple[tuple[str, str], ...] = ()

    @property
    def qualified(self) -> str:
        """Name the relation for a message."""
        return f"{self.schema}.{self.name}"

    def shape(self, attnums: Mapping[str, int], altered_by: int | None) -> LeafShape:
        """Return what must stay the same of it, given the attnums of the table's columns and who altered it."""
        return LeafShape(
            oid=self.oid,
            schema=self.schema,
            name=self.name,
            file=self.relfilenode,
            chain=self.chain,
            persistence=self.persistence,
            identity=self.identity,
            key=tuple(sorted(self.key)),
            altered_by=altered_by,
            bound=partition_bounds.by_attnum(self.bound, attnums),
        )


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Describe one table that is or may be published.

    `kind` is `r` (plain) or `p` (partitioned). `identity` is `d`, `i`, `f` or `n`; `d` and `i` without a usable index are
    given as `n`. `columns` are those that the stream carries, in attnum order, and `hidden` names the others (generated,
    or not in the publication's column list). `key` names the columns that identify a row: the replica identity's, under
    `f` the primary key's, or none; `key_index` is that index, 0 for none. `late_key`: there would be one, but the server enforces it
    late, also if in one partition only, and two rows may have it meanwhile. `filter_digest` is equal as long as the publication's row filter is, None without one;
    `row_filter` is that filter in SQL, only where it was asked for. `membership` names what makes the table a member of the
    publication, with other names after it has left and come back. `attnums` counts the columns that it ever had.
    """

    oid: int
    schema: str
    name: str
    kind: str
    persistence: str
    identity: str
    key: tuple[str, ...]
    columns: tuple[SourceColumn, ...]
    hidden: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    filter_digest: str | None
    relfilenode: int
    parents: tuple[int, ...]
    enums: Mapping[int, tuple[str, ...]]
    composites: Mapping[int, tuple[tuple[str, int, int], ...]]
    membership: tuple[str, ...] = ()
    hidden_attnums: tuple[int, ...] = ()
    part_versions: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    part_names: Mapping[int, str] = field(default_factory=dict)
    row_filter: str | None = None
    attnums: int = 0
    key_index: int = 0
    late_key: bool = False

    @property
    def qualified(self) -> str:
        """Name the table for a message."""
        return f"{self.schema}.{self.name}"

    @property
    def changes_silently(self) -> bool:
        """Return whether rows can come and go without the stream. A table that is published by name cannot be set unlogged."""
        return self.kind == "p" or not any(each.startswith("table ") for each in self.membership)

    @property
    def blocks(self) -> int:
        """Count the heap blocks of all leaves, when they were asked for."""
        return sum(leaf.blocks for leaf in self.leaves)

    @property
    def bytes(self) -> int:
        """Sum the heap bytes of all leaves, when they were asked for."""
        return sum(leaf.bytes for leaf in self.leaves)

    @property
    def where(self) -> str | None:
        """Return the condition under which a row is published, in SQL, or None for all rows."""
        if self.filter_digest is not None and self.row_filter is None:
            raise AssertionError(f"the row filter of {self.qualified} was not asked for")
        return self.row_filter

    @property
    def shape(self) -> Shape:
        """Return what must stay the same between two windows, or else be noticed."""
        attnums = {column.name: column.attnum for column in self.columns}
        return Shape(
            schema=self.schema,
            name=self.name,
            kind=self.kind,
            persistence=self.persistence,
            file=self.relfilenode,
            columns={column.attnum: column.shape for column in self.columns},
            hidden=dict(zip(self.hidden_attnums, self.hidden, strict=True)),
            attnums=self.attnums,
            identity=self.identity,
            key_index=self.key_index,
            filter=self.filter_digest,
            membership=self.membership,
            enums=self.enums,
            composites=self.composites,
            part_versions=self.part_versions,
            parents=self.parents,
            leaves={leaf.oid: leaf.shape(attnums, self.altered_by(leaf)) for leaf in self.leaves},
        )

    def altered_by(self, leaf: Leaf) -> int | None:
        """Return who altered a partition that may have logged less than whole old rows of a table without a key."""
        keyless = self.kind == "p" and self.identity == "f" and not self.key
        return leaf.changed_by if keyless and leaf.has_unique else None
