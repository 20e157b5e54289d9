"""What Airflow orders of Spark and what Spark answers, as plain data, written as JSON next to the landing zone: a copy, a merge, a changelog.

Spark only stages: a result on lake tables lists pointers for `publish` to move. What it says of one table is the same of a merge
and of a changelog. Maintenance has orders of its own (`maintenance_plan`).
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.codec import JsonForm
from penstock.contract.manifest import FileRef, Typed
from penstock.jobs.pointers import Pointer, Rename
from penstock.lake.changelog import MissingTransaction
from penstock.lake.columns import LakeColumn
from penstock.shapes.mirror_column import MirrorColumn

CONFLICTS = ("update_missing", "delete_missing", "insert_existing")
"""What a change can meet: no row to update, none to delete, or one where it inserts."""
MET = (*CONFLICTS, "misfits")
"""What a merge counts besides rows."""


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
class Replaced:
    """Order that at a position all rows but those within the bounds that stay are replaced by the rows of a copy's files."""

    at: int
    stays: tuple[tuple[tuple[Any, ...], ...], ...]
    files: tuple[FileRef, ...]


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Order one table; one that is idle has no columns here, since no one asks for them.

    `identity` is `d`, `i`, `f` or `n` (pg_class.relreplident, with `d` without a primary key given as `n`).
    With `copy_files` the table is loaded again from them (the target's rows go first) before the changes apply;
    `copy_snapshot` (text of pg_current_snapshot()) drops the staged changes that the copy already saw.
    `expected_snapshot` is main's snapshot as we last published it; None when we never did.
    `evolve` says that the source has columns which the last merge did not know: they are added even without changes.
    `fresh` names the table that is made for the copy, to take the target's name when it is published. `rebuild` is the
    rebuild that prepares or has prepared it. `through` is the position that this table reaches, where it is not the
    plan's; what was committed at or after `before` is left out. `shown` is the metadata file that the catalog showed
    under the target's name when this was planned, None for no such table; `inspect` says that it is not the one that we
    published last: whose work that is must be looked at, also where there is nothing to merge. `vacated` says that the table
    which has the target's name leaves it in the same cut. `removed` are the bounds of partitions whose rows go after the changes,
    `replaced` what is put in place of other rows among them, in the order of the positions.
    """

    oid: int
    schema: str
    table: str
    target: tuple[str, ...]
    identity: str
    columns: tuple[MirrorColumn, ...]
    files: tuple[FileRef, ...]
    copy_files: tuple[FileRef, ...] | None = None
    copy_snapshot: str | None = None
    expected_snapshot: int | None = None
    evolve: bool = False
    fresh: tuple[str, ...] | None = None
    rebuild: str | None = None
    through: int | None = None
    before: int | None = None
    shown: str | None = None
    inspect: bool = False
    vacated: bool = False
    removed: tuple[tuple[tuple[Any, ...], ...], ...] = ()
    replaced: tuple[Replaced, ...] = ()

    @property
    def idle(self) -> bool:
        """Return whether there is nothing to merge, to load, to add, to switch or to look at."""
        loads = self.copy_files is not None or self.replaced
        return not (self.files or loads or self.fresh or self.evolve or self.inspect or self.removed)


@dataclass(frozen=True, slots=True)
class MergePlan(LakePlan):
    """Order one run of the merge: every table from its last position through `upto`.

    Without `cut` the run ends with its tables: it fills fresh tables that have no reader yet, and records no cut.
    `cuts_expected_snapshot` is that of the table of cuts as the last cut left it, `cuts_shown` the metadata file that the catalog
    showed of it when this was planned; with `cuts_anew` the table is begun anew where it is not that, or cannot be read.
    `source_time` is the source's time, in ISO 8601, by which all that was committed lies before `upto`. `renames` are the names
    that tables of the lake take in the cut.
    """

    namespace: str
    from_lsn: int
    upto_lsn: int
    tables: tuple[TablePlan, ...]
    skip_commit_lsns: tuple[int, ...] = ()
    on_conflict: str = "continue"
    on_misfit: str = "keep"
    cuts_expected_snapshot: int | None = None
    cuts_shown: str | None = None
    cuts_anew: bool = False
    source_time: str | None = None
    cut: bool = True
    renames: tuple[Rename, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeResult(JsonForm):
    """Report one run: nothing of it is visible before every pointer is moved; `cuts` is None where it records no cut.

    `cuts_anew` is the error for which the table of cuts is begun anew, None where it goes on.
    """

    pipeline: str
    attempt: str
    upto_lsn: int
    tables: tuple[TableResult, ...]
    cuts: Pointer | None
    cuts_snapshot_id: int | None
    seconds: float
    cuts_anew: str | None = None


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
