"""One table's maintenance: delete orphans, expire snapshots, compact, gather manifests.

Every step is a commit of Iceberg's own that leaves the table whole. What frees room comes first: orphans go without a byte
written, snapshots for a metadata file, and only then is anything rewritten. Nothing that began after the plan was made is touched.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import LakeError
from penstock.jobs.maintenance_plan import Figures, MaintenanceOrder, MaintenancePlan, TableReport
from penstock.jobs.pointers import place_of
from penstock.lake.properties import owns_folder
from penstock_spark.iceberg_table import IcebergTable, totals
from penstock_spark.lake_table import LakeTable
from penstock_spark.session import java

_MANIFEST_BYTES = 8 << 20
_FEW_MANIFESTS = 10
_SHARED = "orphans were not looked for: another table keeps its files in its folder, or around it"


@dataclass(frozen=True)
class TableMaintenance:
    """Maintain one table as its order says."""

    table: LakeTable
    plan: MaintenancePlan
    order: MaintenanceOrder

    def run(self) -> TableReport:
        """Do all that is due and report it; a table that is not as we left it is left alone."""
        started = time.monotonic()
        report = TableReport(self.order.target, self.order.oid, self.order.expected_snapshot, None, None, 0.0)
        there, lost = self.table.find_if_readable()
        if lost is not None:
            return replace(report, left=f"it cannot be read, {lost}: the next merge pauses it")
        if there is None:
            return replace(report, left="the catalog does not have it")
        if self.order.watched and not there.is_ours(self.order.expected_snapshot):
            return replace(report, left="it has commits that this pipeline did not publish: the next merge pauses it")
        before = self.figures()
        report = replace(report, before=before, after=before)
        if not self.plan.dry_run:
            report = self._work(report, before)
        report = replace(report, seconds=round(time.monotonic() - started, 3))
        passed = self._present().since(self.order.expected_snapshot)
        if self.order.watched and passed[-1:] != [self.order.expected_snapshot]:  # main is not ours to take over
            return replace(report, left="another session wrote to it meanwhile: the next merge pauses it")
        return replace(report, snapshot_id=passed[0] if passed else None)

    def _work(self, report: TableReport, before: Figures) -> TableReport:
        alone = owns_folder(self._present().folder, self.plan.other_folders(place_of(self.order.target)))
        orphans = self._delete_orphans() if alone else 0
        expired = self._expire()
        rewritten = self._compact() if before.files else 0
        self._gather_manifests()
        return replace(
            report,
            after=self.figures(),
            rewritten_files=rewritten,
            expired_snapshots=expired,
            orphans=orphans,
            left=None if alone else _SHARED,
        )

    def _present(self) -> IcebergTable:
        return IcebergTable(self.table.load())

    # --- figures ------------------------------------------------------------------------------------

    def figures(self) -> Figures:
        """Measure the table as it is."""
        loaded = self.table.load()
        snapshot = loaded.currentSnapshot()
        snapshots = sum(1 for _ in loaded.snapshots())
        if snapshot is None:
            return Figures(0, 0, 0, 0, 0, snapshots, 0)
        files, size, rows, gone = totals(snapshot, "data-files", "files-size", "records", "position-deletes")
        (delete_files,) = totals(snapshot, "delete-files")
        manifests = int(snapshot.allManifests(loaded.io()).size())
        return Figures(files, size, rows - gone, delete_files, gone, snapshots, manifests)

    # --- the steps ----------------------------------------------------------------------------------

    def _compact(self) -> int:
        """Rewrite small files, and those with deleted rows in them; return how many."""
        action = self._actions().rewriteDataFiles(self.table.load()).binPack()
        for option, value in self._compaction().items():
            action = action.option(option, value)
        result = action.execute()
        if result.failedDataFilesCount():
            raise LakeError(
                "spark-failed",
                f"expected to rewrite all chosen files of {'.'.join(self.order.target)}, "
                f"but {result.failedDataFilesCount()} were not; what was committed stays: run maintenance again",
            )
        return int(result.rewrittenDataFilesCount())

    def _compaction(self) -> dict[str, str]:
        sized = {} if self.plan.file_bytes is None else {"target-file-size-bytes": str(self.plan.file_bytes)}
        return sized | {
            "delete-ratio-threshold": str(self.plan.deleted_share),
            "min-input-files": str(self.plan.small_files),
            "remove-dangling-deletes": "true",
            # a long rewrite that is killed keeps what it has committed
            "partial-progress.enabled": "true",
        }

    def _expire(self) -> int:
        """Expire the snapshots that no cut names and nothing else needs; delete the files that only they had."""
        loaded = self.table.load()
        compacted = self._present().since(self.order.expected_snapshot)
        kept = {*self.order.keep, *compacted, *_refs(loaded), *self._present().main_since(self.plan.read_since)}
        old = [
            int(snapshot.snapshotId())
            for snapshot in loaded.snapshots()
            if snapshot.timestampMillis() < self.plan.planned_at and snapshot.snapshotId() not in kept
        ]
        if old:
            # without a time of its own, Iceberg would also expire what is older than five days, cuts included
            expire = loaded.expireSnapshots().expireOlderThan(0)
            for snapshot_id in old:
                expire = expire.expireSnapshotId(snapshot_id)
            expire.commit()
        return len(old)

    def _gather_manifests(self) -> None:
        """Write few manifests in place of many small ones, from which every scan would be planned."""
        loaded = self.table.load()
        snapshot = loaded.currentSnapshot()
        if snapshot is None:
            return
        manifests = snapshot.allManifests(loaded.io())
        total = sum(manifest.length() for manifest in manifests)
        if manifests.size() > _FEW_MANIFESTS + 2 * total // _MANIFEST_BYTES:
            self._actions().rewriteManifests(loaded).execute()

    def _delete_orphans(self) -> int:
        """Delete the table's old files that no snapshot, branch or metadata file names; return how many."""
        action = self._actions().deleteOrphanFiles(self.table.load()).olderThan(self.plan.orphans_before)
        # listed by the table's own client, which knows its store; the slash keeps out `t2` next to `t`
        action = action.usePrefixListing(True).location(f"{self._present().folder.rstrip('/')}/")
        return sum(1 for _ in action.execute().orphanFileLocations())

    def _actions(self) -> Any:
        return java("org.apache.iceberg.spark.actions.SparkActions").get(self.table.session._jsparkSession)


def _refs(loaded: Any) -> set[int]:
    return {int(ref.snapshotId()) for ref in loaded.refs().values()}
