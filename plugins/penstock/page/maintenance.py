"""What the page shows of the last maintenance run, as plain values; figures before and after, per table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.jobs.maintenance_plan import TableReport
from penstock.ledger.maintenance import MaintenanceRecord


@dataclass(frozen=True)
class MaintainedTable:
    """Show one table; pairs are before and after, None where nothing was measured."""

    target: str
    files: tuple[int, int] | None
    bytes: tuple[int, int] | None
    delete_files: tuple[int, int] | None
    snapshots: tuple[int, int] | None
    orphans: int
    left: str | None


@dataclass(frozen=True)
class LastMaintenance:
    """Show one run, or the condition that ended it; without an end it is at work, or was killed."""

    started_at: datetime
    ended_at: datetime | None
    error: str | None
    dry_run: bool
    tables: list[MaintainedTable]
    dropped: list[str]
    windows: int
    copies: int
    released_bytes: int

    def table(self, target: str) -> MaintainedTable | None:
        """Return what the run found of one table of the lake."""
        return next((each for each in self.tables if each.target == target), None)


def last_maintenance(record: MaintenanceRecord) -> LastMaintenance:
    """Show a run."""
    lake = record.report["lake"] if record.report else {"tables": [], "dropped": []}
    landing = record.report["landing"] if record.report else {}
    return LastMaintenance(
        started_at=record.started_at,
        ended_at=record.ended_at,
        error=record.error,
        dry_run=record.dry_run,
        tables=[_table(TableReport.from_json(entry)) for entry in lake["tables"]],
        dropped=[f"{entry['namespace']}.{entry['table']}" for entry in lake["dropped"]],
        windows=landing.get("windows", 0),
        copies=landing.get("copies", 0),
        released_bytes=landing.get("bytes", 0),
    )


def _table(report: TableReport) -> MaintainedTable:
    name, before, after = ".".join(report.target), report.before, report.after
    if before is None or after is None:
        return MaintainedTable(name, None, None, None, None, 0, report.left)
    return MaintainedTable(
        target=name,
        files=(before.files, after.files),
        bytes=(before.bytes, after.bytes),
        delete_files=(before.delete_files, after.delete_files),
        snapshots=(before.snapshots, after.snapshots),
        orphans=report.orphans,
        left=report.left,
    )
