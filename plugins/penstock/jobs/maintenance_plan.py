"""The orders of a maintenance run on lake tables, and what it answers: plain data, written as JSON like a merge's.

Unlike a merge, maintenance commits to main itself: it changes how rows are stored, never which there are. The plan
says per table where main must be, and which snapshots a reader may still want.
"""

from dataclasses import dataclass

from penstock.codec import JsonForm
from penstock.jobs.plans import LakePlan
from penstock.jobs.pointers import Place


@dataclass(frozen=True, slots=True)
class MaintenanceOrder:
    """Order one table: main must be at `expected_snapshot`, or compacted since; `keep` are snapshots of cuts.

    Without `watched` it is unknown where main was, and any snapshot will do.
    """

    target: tuple[str, ...]
    expected_snapshot: int | None
    keep: tuple[int, ...]
    oid: int | None = None
    watched: bool = True


@dataclass(frozen=True, slots=True)
class TableFolder:
    """Say in which folder a table keeps its files; one that is not `listed` is one that the catalog no longer has."""

    namespace: str
    table: str
    folder: str
    listed: bool = True

    @property
    def place(self) -> Place:
        """Return the table's place in the catalog."""
        return self.namespace, self.table


@dataclass(frozen=True, slots=True)
class MaintenancePlan(LakePlan):
    """Order one run.

    Times are milliseconds since 1970, UTC. Snapshots from `planned_at` on, those that were main until `read_since` or
    later, and files from `orphans_before` on are never touched: they may belong
    to work that began later, or to readers. `old_tables` are not read any more, and to be dropped; `folders` is where every
    table of the catalog has its files, other pipelines' included. Compaction takes files of which more than `deleted_share` is deleted, and
    groups of `small_files` small ones; `file_bytes` is its target, None for the tables' own.
    """

    planned_at: int
    read_since: int
    orphans_before: int
    tables: tuple[MaintenanceOrder, ...]
    old_tables: tuple[TableFolder, ...]
    folders: tuple[TableFolder, ...]
    deleted_share: float
    small_files: int
    file_bytes: int | None
    time_budget: int
    dry_run: bool = False

    def other_folders(self, place: Place) -> list[str]:
        """Return the folders of all tables of the catalog but this one."""
        return [each.folder for each in self.folders if each.place != place]


@dataclass(frozen=True, slots=True)
class Figures:
    """Measure one table: live files and their bytes, delete files, rows deleted in them, snapshots, manifests."""

    files: int
    bytes: int
    rows: int
    delete_files: int
    deleted_rows: int
    snapshots: int
    manifests: int


@dataclass(frozen=True, slots=True)
class TableReport(JsonForm):
    """Report one table; `left` says why it was left as it was, if it was, and `slug` names the error that did that, if one did.

    `snapshot_id` is main afterwards, which shows the same rows as before.
    """

    target: tuple[str, ...]
    oid: int | None
    snapshot_id: int | None
    before: Figures | None
    after: Figures | None
    seconds: float
    rewritten_files: int = 0
    expired_snapshots: int = 0
    orphans: int = 0
    left: str | None = None
    slug: str | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceResult(JsonForm):
    """Report one run on the lake; `dropped` are the old tables that are gone, with all their files."""

    pipeline: str
    attempt: str
    tables: tuple[TableReport, ...]
    dropped: tuple[TableFolder, ...]
    seconds: float
