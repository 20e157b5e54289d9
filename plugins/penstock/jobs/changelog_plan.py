"""The fill of changelogs that Airflow orders of Spark, and what Spark answers, as JSON next to the landing zone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from penstock.codec import JsonForm
from penstock.contract.manifest import FileRef
from penstock.jobs.pointers import Pointer
from penstock.lake.changelog import MissingTransaction
from penstock.lake.columns import LakeColumn


@dataclass(frozen=True, slots=True)
class ChangelogTable:
    """Order one changelog: the fields that it must have at least, where the interval's changes lie, and what is missing."""

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
class ChangelogPlan(JsonForm):
    """Order one fill: in every changelog, the changes committed in `[from_time, upto_time)` become those of the files.

    `landing_uri`, `landing_options` and `task_memory` are those of a merge plan.
    """

    pipeline: str
    attempt: str
    catalog: str
    from_time: datetime
    upto_time: datetime
    era: int
    through_lsn: int
    tables: tuple[ChangelogTable, ...]
    parallel_tables: int = 4
    table_properties: dict[str, str] = field(default_factory=dict)
    landing_uri: str = ""
    landing_options: dict[str, str] = field(default_factory=dict)
    task_memory: int = 512 << 20


@dataclass(frozen=True, slots=True)
class ChangelogTableResult:
    """Report one changelog: what was written and what went, or why it stays as it was."""

    target: tuple[str, ...]
    pointer: Pointer | None
    snapshot_id: int | None
    rows: int
    removed: int
    seconds: float
    slug: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ChangelogResult(JsonForm):
    """Report one fill: nothing of it is visible before its pointers are moved."""

    pipeline: str
    attempt: str
    tables: tuple[ChangelogTableResult, ...]
    seconds: float
