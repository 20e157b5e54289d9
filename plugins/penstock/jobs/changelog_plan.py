"""The fill of changelogs that Airflow orders of Spark, and what Spark answers, as JSON next to the landing zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.codec import JsonForm
from penstock.contract.manifest import FileRef
from penstock.jobs.application import LakePlan, TableResult
from penstock.lake.changelog import MissingTransaction
from penstock.lake.columns import LakeColumn


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
