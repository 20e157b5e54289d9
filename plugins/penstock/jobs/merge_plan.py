"""The merge that Airflow orders of Spark, and what Spark answers: plain data, written as JSON next to the landing zone.

A `MergePlan` names landed files to bring into lake tables. Spark only stages: a `MergeResult` lists pointers for `publish` to move.
"""

from dataclasses import dataclass
from typing import Any

from penstock.codec import JsonForm
from penstock.contract.manifest import FileRef
from penstock.jobs.plans import LakePlan, TableResult
from penstock.jobs.pointers import Pointer, Rename
from penstock.shapes.mirror_column import MirrorColumn

CONFLICTS = ("update_missing", "delete_missing", "insert_existing")
"""What a change can meet: no row to update, none to delete, or one where it inserts."""
MET = (*CONFLICTS, "misfits")
"""What a merge counts besides rows."""


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
