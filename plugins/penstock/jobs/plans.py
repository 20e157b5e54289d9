"""The orders of Spark's applications as plain data, written as JSON next to the landing zone: their frame, a copy's, and a changelog's.

What each application on lake tables says of one table is the same of a merge and of a changelog.
"""

from dataclasses import dataclass, field
from datetime import datetime

from penstock.codec import JsonForm
from penstock.contract.manifest import FileRef, Typed
from penstock.jobs.pointers import Pointer
from penstock.lake.changelog import MissingTransaction
from penstock.lake.columns import LakeColumn


@dataclass(frozen=True, slots=True)
class CopyRange:
    """Order one task of a copy, or of a fetch: heap blocks `[first_block, last_block)` of one relation, landed as one file.

    `last_block` None means to the end. `relation` is the heap to read: a leaf of a partitioned table, else the table.
    `where` is the publication's row filter, or None. `typed` pairs the columns to be landed as values with their lake
    types; a range with a text that is none is landed as texts. `reals` are columns of type `real`. A `plain` range is a whole
    relation over which no query can be planned: it is read by its name. In a fetch, the columns
    have these `attnums`, and their values are landed as changes that were committed at `commit_lsn`.
    """

    oid: int
    relation_schema: str
    relation_name: str
    columns: tuple[str, ...]
    first_block: int
    last_block: int | None
    where: str | None
    path: str
    typed: Typed = ()
    attnums: tuple[int, ...] = ()
    commit_lsn: int | None = None
    reals: tuple[str, ...] = ()
    plain: bool = False


@dataclass(frozen=True, slots=True)
class CopyPlan(JsonForm):
    """Order one copy: every range is read in the exported snapshot `snapshot_name`, and landed at its path, within `seconds`."""

    pipeline: str
    attempt: str
    landing_uri: str
    result_folder: str
    snapshot_name: str
    parallel: int
    batch_bytes: int
    ranges: tuple[CopyRange, ...]
    landing_options: dict[str, str] = field(default_factory=dict)
    seconds: int = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class LakePlan(JsonForm):
    """Order one attempt at the tables of a pipeline, so many of them at once.

    `landing_uri` and `landing_options` are those of the pipeline file, without secrets: options name the variables that hold
    them. `task_memory` are the bytes that one table's task may take before it spills. `table_properties` are those of new tables.
    """

    pipeline: str
    attempt: str
    catalog: str
    era: int = 1
    parallel_tables: int = 4
    table_properties: dict[str, str] = field(default_factory=dict)
    landing_uri: str = ""
    landing_options: dict[str, str] = field(default_factory=dict)
    task_memory: int = 512 << 20


@dataclass(frozen=True, slots=True)
class TableSize:
    """Measure a table of the lake: its live rows, its data files and their bytes."""

    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TableResult:
    """Report one table that was merged, or one changelog: its pointer, or why it stays as it was.

    Of a merge `counts` has: inserts, updates, deletes, truncates (events read), rows_deleted, rows_written,
    update_missing, delete_missing, insert_existing, misfits, skipped; of a changelog rows_written and rows_deleted. `failure`
    names the class of an error without a kind that paused it. `shows` is the metadata file of a table that does not move, where it
    was looked at; `size` that of one that moves.
    """

    oid: int
    target: tuple[str, ...]
    pointer: Pointer | None
    snapshot_id: int | None
    counts: dict[str, int]
    seconds: float
    paused_slug: str | None = None
    paused_reason: str | None = None
    failure: str | None = None
    shows: str | None = None
    size: TableSize | None = None


@dataclass(frozen=True, slots=True)
class ChangelogTable:
    """Order one changelog: the fields that it must have at least, where the interval's changes lie, and what is missing."""

    oid: int
    target: tuple[str, ...]
    columns: tuple[LakeColumn, ...]
    files: tuple[FileRef, ...]
    missing: tuple[MissingTransaction, ...] = ()

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to write."""
        return not self.files and not self.missing

    @property
    def bytes(self) -> int:
        """Return the bytes to read."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class ChangelogPlan(LakePlan):
    """Order one fill: in every changelog, the changes committed in `[from_time, upto_time)` become those of the files."""

    from_time: datetime
    upto_time: datetime
    through_lsn: int
    tables: tuple[ChangelogTable, ...]


@dataclass(frozen=True, slots=True)
class ChangelogResult(JsonForm):
    """Report one fill: nothing of it is visible before its pointers are moved."""

    pipeline: str
    attempt: str
    tables: tuple[TableResult, ...]
    seconds: float
