"""What may become of a table between two looks at the catalog: one class for each kind of change. Pure.

A change is a fact, and says nothing of what follows; that is `penstock.shapes.rules`. `penstock.shapes.diff` finds them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.shapes.accepted import GonePartition
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.source_table import Leaf, SourceColumn


@dataclass(frozen=True, slots=True)
class TableUnfit:
    """Say why a table as it is now has no place in the lake, under which slug; `for_old_rows`: because of updates and deletes alone."""

    why: str
    slug: str
    for_old_rows: bool = False


@dataclass(frozen=True, slots=True)
class TableRenamed:
    """Give the table's qualified names of before and now."""

    before: str
    now: str


@dataclass(frozen=True, slots=True)
class ColumnGone:
    """Name a column that the source does not have any more, or that is `hidden` from the stream: generated, or not published."""

    column: MirrorColumn
    hidden: bool


@dataclass(frozen=True, slots=True)
class ColumnRenamed:
    """Name a column with another name."""

    column: MirrorColumn
    now: SourceColumn


@dataclass(frozen=True, slots=True)
class ColumnRetyped:
    """Name a column with another type. One whose type is only called otherwise holds the same values."""

    column: MirrorColumn
    now: SourceColumn


@dataclass(frozen=True, slots=True)
class ColumnAdded:
    """Name a column that was not in the stream, with the leaves that have a new file.

    One that was `hidden` was there, generated or not published: what its old rows show is in no file.
    """

    now: SourceColumn
    files: frozenset[int] = frozenset()
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ColumnAltered:
    """Name a known column whose catalog row is another one, with the leaves that have a new file."""

    now: SourceColumn
    files: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class WholeRowsCompared:
    """Name the lake's columns that the source does not have, where whole rows are to tell which of the lake's are meant."""

    missing: tuple[MirrorColumn, ...]


@dataclass(frozen=True, slots=True)
class FilterChanged:
    """Say that the publication sends other rows."""


@dataclass(frozen=True, slots=True)
class LabelsChanged:
    """Name an enum of which stored values may show another label than at the last look."""

    oid: int
    name: str


@dataclass(frozen=True, slots=True)
class AttributesChanged:
    """Name a composite type whose values may have another text, and a column that has such values."""

    name: str
    column: SourceColumn


@dataclass(frozen=True, slots=True)
class LeafGone:
    """Name a partition that is gone, or was truncated by itself, and say why its bounds alone do not tell its rows in the lake."""

    partition: GonePartition
    unclear: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeafAttached:
    """Name a partition that was a table of its own at the last look."""

    leaf: Leaf

    @property
    def has_other_file(self) -> bool:
        """Return whether it was rewritten or truncated since it was made: a table is made with a file of its own oid."""
        return self.leaf.kind == "r" and self.leaf.file != self.leaf.oid


@dataclass(frozen=True, slots=True)
class LeafChanged:
    """Name a partition that was changed by itself, and say how: its rows may be others than those that were sent."""

    leaf: Leaf
    how: str


@dataclass(frozen=True, slots=True)
class FileChanged:
    """Name a leaf with another file than before, or, where it is `new`, than it was made with.

    `silent`: its rows can come and go without the stream; `partition`: it is no table of its own.
    """

    leaf: Leaf
    new: bool
    silent: bool
    partition: bool


@dataclass(frozen=True, slots=True)
class KeyChanged:
    """Say that rows are found by other columns, or come in another way: by the key of before and of now, names by attnum.

    `before` and `now` are the replica identities. `late`: there would be a key that is enforced late. `plain`: the table has no partitions.
    """

    before: str
    now: str
    key_before: Mapping[int, str]
    key_now: Mapping[int, str]
    plain: bool
    late: bool


Change = (
    TableUnfit
    | TableRenamed
    | ColumnGone
    | ColumnRenamed
    | ColumnRetyped
    | ColumnAdded
    | ColumnAltered
    | WholeRowsCompared
    | FilterChanged
    | LabelsChanged
    | AttributesChanged
    | LeafGone
    | LeafAttached
    | LeafChanged
    | FileChanged
    | KeyChanged
)
