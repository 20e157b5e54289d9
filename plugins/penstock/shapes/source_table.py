"""A source table as its catalog describes it: what the stream carries of it, where its rows lie, and its shape. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.shapes.shape import Described, LeafShape, Shape, fields_of
from penstock.values.pgtype import PgType


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


@dataclass(frozen=True, slots=True)
class Attach:
    """Name an ATTACH by the version of its `pg_inherits` row, its 32-bit transaction id and its command, if that is known."""

    version: str
    xid: int
    cid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(LeafShape):
    """Describe one relation that holds rows, with what a look alone asks for.

    `kind` is `r` or `f` (foreign: its rows are elsewhere). `ranged`: whether it can be read by ranges of heap blocks. `changed_by` is
    the 32-bit id of the transaction that wrote its `pg_class` row. `attached` has each ATTACH among its chain, none for a partition by
    birth: rows that it had before were never sent. `missing` has the `missing_text` of its columns by name.
    """

    kind: str
    blocks: int
    bytes: int
    ranged: bool
    changed_by: int = 0
    attached: tuple[Attach, ...] = ()
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
