"""What a merge task is given and what it answers: plain data both ways, so that any process can carry it out.

A task knows files, never a catalog: the driver names the data files that the table has now, and commits what the
task has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

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
class LandedFile:
    """Name one landing file: how many rows it has, and the fields of its images (of a copy: its columns).

    `fields` says per column under which name the table has it, None where it does not; left out: under the same.
    `typed` names the columns of a copy that hold values of the lake's types instead of texts; `only` are the first row
    and the one after the last that concern a task, where it is not to read all of the file. The changes of a `partial` file
    leave out the columns that it lacks. `reals` are the table's columns of double precision that it has as texts of `real`.
    """

    uri: str
    rows: int
    columns: tuple[str, ...]
    typed: frozenset[str] = frozenset()
    only: tuple[int, int] | None = None
    fields: tuple[str | None, ...] | None = None
    partial: bool = False
    reals: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str | None, ...]:
        """Return the table's names of the file's columns, None for one that the table does not have."""
        return self.columns if self.fields is None else self.fields


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
class PartitionField:
    """Name one field of the table's partition: its id, the position of the column, and the transform of its values."""

    id: int
    position: int
    transform: str


@dataclass(frozen=True, slots=True)
class SortField:
    """Name one field by which the rows of a new file are sorted."""

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
    the table's data files: none where no row of it can matter. New files go below `folder`, the table's data folder.
    `grows_only` says that the table has neither key nor REPLICA IDENTITY FULL. `moves`, `unchanged` and `truncates` say
    what may be among the changes, by the counts of the manifests. `skip` are the commit LSNs to leave out, `seen_by`
    the snapshot whose changes are to be left out, `before` a commit LSN from which on all is left out; `since` and `until`
    bound the places of the changes (`engine.segments`). Changes of rows that are not `within` each of these lists of bounds
    are left out, too.
    """

    columns: tuple[Column, ...]
    misfits_ids: tuple[int, ...]
    landed: tuple[LandedFile, ...]
    target: tuple[TargetFile, ...]
    folder: str
    copy: bool = False
    grows_only: bool = False
    moves: bool = True
    unchanged: bool = True
    truncates: bool = True
    skip: tuple[int, ...] = ()
    seen_by: Snapshot | None = None
    before: int | None = None
    since: int | None = None
    until: int | None = None
    within: tuple[tuple[Bounds, ...], ...] = ()
    stop_on_conflict: bool = False
    stop_on_misfit: bool = False
    partition: tuple[PartitionField, ...] = ()
    sort: tuple[SortField, ...] = ()
    storage: Storage = Storage()
    resources: Resources = Resources()
    cell: Cell = Cell()

    @property
    def keys(self) -> tuple[int, ...]:
        """Return the positions of the key columns."""
        return tuple(position for position, column in enumerate(self.columns) if column.key)

    def new_location(self, ending: str) -> str:
        """Return the location of a new file in the table's data folder."""
        return new_location(self.folder, ending)


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
class ResolvedCell:
    """Report what one task of a split batch found out, and the rows that only it could write.

    `live` are the rows of landed files that are to be written, by the file's number, and `going` the rows of data files
    that go, by path: bitmaps as bytes. `first` and `met` count keys by the kind of their first event: all of them, and
    those with a row in these data files, `within` conflicts within the batch; `holes` the rows that need a value of the lake's, `placed` those that found it here.
    """

    files: tuple[NewFile, ...]
    live: dict[int, bytes]
    going: dict[str, bytes]
    first: dict[int, int]
    within: dict[str, int]
    met: dict[int, int]
    holes: int
    placed: int
    misfits: int
    truncated: bool
    ops: dict[str, int] | None


@dataclass(frozen=True, slots=True)
class MergeAnswer:
    """Report what is to be committed: nothing of it counts before.

    With `truncated` every data file of before goes. `ops` counts the changes by their `op`, where some were left out;
    `seconds` says where the time went.
    """

    files: tuple[NewFile, ...] = ()
    vectors: tuple[NewVector, ...] = ()
    truncated: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    ops: dict[str, int] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
