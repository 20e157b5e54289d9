"""What a merge task is given and what it answers: plain data both ways, so that any process can carry it out.

A task knows files, never a catalog: the driver names the data files that the table has now, and commits what the
task has written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import uuid4

from penstock.contract.manifest import FileRef, total
from penstock.lake.columns import LakeColumn
from penstock.shapes.pg_snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Column:
    """Describe one column of the table.

    `ids` are Iceberg's field ids: the column's own, then those of what is in it. `missing_text` is the text that changes
    from before the column existed show; `default` is what rows of data files without the column show, as text that
    DuckDB casts (Iceberg's initial-default), or None for NULL.
    """

    name: str
    lake_type: str
    ids: tuple[int, ...]
    key: bool = False
    missing_text: str | None = None
    default: str | None = None

    @property
    def always_fits(self) -> bool:
        """Return whether no source value can misfit this column's type."""
        return LakeColumn(self.name, self.lake_type).always_fits


@dataclass(frozen=True, slots=True)
class Vector:
    """Name a deletion vector: a blob of a Puffin file that says which rows of a data file are gone."""

    path: str
    offset: int
    length: int
    cardinality: int


@dataclass(frozen=True, slots=True)
class TargetFile:
    """Name one data file of the table, under the very path that its manifest has, and its deletion vector."""

    path: str
    rows: int
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """Bound what a task may take: threads, and memory in bytes, beyond which it spills to the disk."""

    threads: int = 1
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LayoutField:
    """Name one field of a table's partition, or of the order of its rows: the column's position, and the transform of its values."""

    position: int
    transform: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class Storage:
    """Say how new Parquet files are written: codec, level (zstd's own where None), bytes per row group and per file."""

    codec: str = "zstd"
    level: int | None = 1
    row_group_bytes: int = 32 << 20
    file_bytes: int = 512 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """Say where new files of a table go, below its data folder, and how their rows are divided, sorted and stored."""

    folder: str
    partition: tuple[LayoutField, ...] = ()
    sort: tuple[LayoutField, ...] = ()
    storage: Storage = Storage()


@dataclass(frozen=True, slots=True)
class Cell:
    """Name what one task of a split batch resolves: the keys of one of so many hash parts, in the data files of its order.

    Of the tasks with the same keys and other data files, `first` reports what does not depend on these.
    """

    part: int = 0
    parts: int = 1
    first: bool = True


Bounds = Sequence[Sequence[Any]]
"""The bounds of one partition: per level the column's name, the kind, the ends of a range (or None), the values of a list (or None)."""


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """Order one table's batch.

    `landed` are the changes, or with `copy` the rows of a copy that replace nothing and are only appended. `target` are
    the table's data files: none where no row of it can matter. `identity` is the table's REPLICA IDENTITY, as a plan has it.
    `skip` are the commit LSNs to leave out, `seen_by` the snapshot whose changes are to be left out, `before` a commit LSN from
    which on all is left out; `since` and `until` bound the places of the changes (`engine.segments`). Changes of rows that are
    not `within` each of these lists of bounds are left out, too.
    """

    columns: tuple[Column, ...]
    misfits_ids: tuple[int, ...]
    landed: tuple[FileRef, ...]
    target: tuple[TargetFile, ...]
    layout: Layout
    copy: bool = False
    identity: str = "f"
    skip: tuple[int, ...] = ()
    seen_by: Snapshot | None = None
    before: int | None = None
    since: int | None = None
    until: int | None = None
    within: tuple[tuple[Bounds, ...], ...] = ()
    stop_on_conflict: bool = False
    stop_on_misfit: bool = False
    resources: Resources = Resources()
    cell: Cell = Cell()

    @property
    def keys(self) -> tuple[int, ...]:
        """Return the positions of the key columns."""
        return tuple(position for position, column in enumerate(self.columns) if column.key)

    @property
    def grows_only(self) -> bool:
        """Return whether the table has neither key nor REPLICA IDENTITY FULL."""
        return self.identity != "f" and not total(self.landed).old_full

    @property
    def moves(self) -> bool:
        """Return whether a change may move a row to another key: one that is no delete has an old image."""
        counts = total(self.landed)
        return counts.old_key + counts.old_full > counts.deletes

    @property
    def truncates(self) -> bool:
        """Return whether there are truncates among the changes."""
        return total(self.landed).truncates > 0


def new_location(folder: str, ending: str) -> str:
    """Return the location of a new file in a table's data folder."""
    return f"{folder}/{uuid4()}{ending}"


@dataclass(frozen=True, slots=True)
class NewFile:
    """Report a data file that the task has written.

    `partition` are the values of the partition that all of its rows are in, one for each field of the order's.
    """

    path: str
    rows: int
    bytes: int
    partition: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class NewVector:
    """Report the deletion vector of a data file: all that is gone from it now, in `file_bytes` of a Puffin file."""

    data_file: str
    vector: Vector
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Written:
    """Hold the new files of rows, and how many values misfit in them."""

    files: tuple[NewFile, ...] = ()
    misfits: int = 0

    @property
    def rows(self) -> int:
        """Return how many rows there are."""
        return sum(file.rows for file in self.files)

    def __add__(self, other: Written) -> Written:
        return Written((*self.files, *other.files), self.misfits + other.misfits)


@dataclass(frozen=True, slots=True)
class Tally:
    """Count what a batch of changes of keys, or a cell of it, came to.

    `first` counts the keys by the kind of their first event, `met` those of them with a row in the data files, `within` conflicts
    within the batch; `live` are the rows to be written, `holes` those of them that need a value of the lake's, `placed`
    those that found it here.
    """

    first: Counter[int] = field(default_factory=Counter)
    within: Counter[str] = field(default_factory=Counter)
    live: int = 0
    holes: int = 0
    met: Counter[int] = field(default_factory=Counter)
    placed: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True, slots=True)
class ResolvedCell:
    """Report what one task of a split batch found out, and the rows that only it could write.

    `live` are the rows of landed files that are to be written, by the file's number, and `going` the rows of data files
    that go, by path: bitmaps as bytes.
    """

    written: Written
    live: dict[int, bytes]
    going: dict[str, bytes]
    tally: Tally
    truncated: bool
    ops: dict[str, int] | None


@dataclass(frozen=True, slots=True)
class MergeAnswer:
    """Report what is to be committed: nothing of it counts before.

    With `truncated` every data file of before goes. `ops` counts the changes by their `op`, where some were left out.
    """

    files: tuple[NewFile, ...] = ()
    vectors: tuple[NewVector, ...] = ()
    truncated: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    ops: dict[str, int] | None = None
