"""What a page shows of the ledger: one bounded query per panel, all of one page read at one moment.

Nothing here reads a list of files or a row of anybody's table; sums and steps of time are made by the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from penstock.conditions import Level as AlarmLevel
from penstock.ledger.health import SlotLook
from penstock.ledger.maintenance import MaintenanceRecord
from penstock.ledger.records import Level, PipelineFacts, Row, WindowState
from penstock.ledger.session import Part, Transaction
from penstock.ledger.table_page import OneTable, TableStanding
from penstock.ledger.table_records import RebuildKind, RebuildState
from penstock.ledger.work import WorkNote
from penstock.lsn import Lsn

WINDOWS = 20
CUTS = 20
EVENTS = 40
ALARMS = 200
TABLES = 5000
SEARCHED_WINDOWS = 100
"""So many of the newest windows with changes are searched for a table's last change."""


@dataclass(frozen=True)
class PipelinePanel(PipelineFacts):
    """Hold where a pipeline stands.

    `as_of` is the source's time up to which the lake has every change, as the last look at an idle source renews it; the unmerged windows are those with changes after the newest cut. A merge keeps its Spark application until
    `spark_until`, None where none does, and has made `spark_cuts` with it.
    """

    cut_lsn: Lsn | None
    cut_at: datetime | None
    captured_at: datetime | None
    as_of: datetime | None
    unmerged_windows: int
    unmerged_changes: int
    unmerged_bytes: int
    unmerged_since: datetime | None
    tables: int
    ready: int
    paused: int
    spark_until: datetime | None
    spark_cuts: int | None
    halted_by: dict[str, str] | None


@dataclass(frozen=True)
class WindowPanel(Row):
    """Hold one window without its files."""

    from_lsn: Lsn
    upto_lsn: Lsn
    state: WindowState
    changes: int
    bytes: int
    transactions: int
    seconds: float | None
    planned_at: datetime
    staged_at: datetime | None
    source_time: datetime | None
    by_task: dict[str, str] | None


@dataclass(frozen=True)
class CutPanel(Row):
    """Hold one cut; `source_time` is the source's time at its position, None for a cut that ends with no window.

    `oldest_commit` is when the first of its changes was committed, None where it holds none or that is unknown.
    """

    lsn: Lsn
    attempt: str
    changes: int
    tables: int
    published_at: datetime
    source_time: datetime | None
    oldest_commit: datetime | None
    by_task: dict[str, str] | None


@dataclass(frozen=True)
class TablePanel(TableStanding):
    """Hold one table of a list; `changes` and `changed_at` cover the newest windows only, None when they hold none."""

    changes: int | None
    changed_at: datetime | None


@dataclass(frozen=True)
class RebuildPanel(Row):
    """Hold one open rebuild: built through `through_lsn` on its way to `end_lsn`; `rows` are those brought so far."""

    id: str
    oid: int
    kind: RebuildKind
    state: RebuildState
    schema: str
    name: str
    place: list[str]
    through_lsn: Lsn | None
    end_lsn: Lsn | None
    rows: int
    copied_rows: int | None
    started_at: datetime
    changed_at: datetime


@dataclass(frozen=True)
class EventPanel(Row):
    """Hold one event."""

    at: datetime
    slug: str
    level: Level
    message: str
    oid: int | None
    table_name: str | None
    by_task: dict[str, str] | None


@dataclass(frozen=True)
class SchemaChangePanel(Row):
    """Hold one change of a table's shape that the lake follows."""

    at: datetime
    oid: int
    table_name: str
    message: str
    details: dict[str, Any]


@dataclass(frozen=True)
class SlotPanel(SlotLook):
    """Hold the newest look at a pipeline's own slot."""

    pipeline: str
    details: dict[str, Any]


@dataclass(frozen=True)
class AlarmPanel(Row):
    """Hold one open alarm."""

    pipeline: str
    slug: str
    subject: str
    level: AlarmLevel
    message: str
    opened_at: datetime
    numbers: dict[str, Any]
    by_task: dict[str, str] | None


@dataclass(frozen=True)
class SlotStep(Row):
    """Hold the peaks of one step of time, in bytes."""

    at: datetime
    unread: int | None
    retained: int | None


@dataclass(frozen=True)
class CaptureStep(Row):
    """Hold what was captured in one step of time: changes, and the longest window's seconds."""

    at: datetime
    changes: int
    seconds: float | None


@dataclass(frozen=True)
class LakeStep(Row):
    """Hold how the lake stood in one step of time, and what was done in it; CPU is unknown where nothing was counted before."""

    at: datetime
    median_seconds: float | None
    worst_seconds: float | None
    lake_bytes: int | None
    landing_bytes: int
    cuts: int
    changes: int
    cut_seconds: float
    merge_cpu_seconds: float | None
    capture_cpu_seconds: float | None


class Panel:
    """Read panels inside one frozen transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def pipelines(self, name: str | None = None) -> list[PipelinePanel]:
        """Return every pipeline, or the one of this name."""
        return self._transaction.records(PipelinePanel, "page/pipelines", name=name)

    def windows(self, name: str) -> list[WindowPanel]:
        """Return the newest windows, newest first."""
        return self._transaction.records(WindowPanel, "page/windows", name=name, limit=WINDOWS)

    def cuts(self, name: str) -> list[CutPanel]:
        """Return the newest cuts, newest first."""
        return self._transaction.records(CutPanel, "page/cuts", name=name, limit=CUTS)

    def tables(self, name: str) -> list[TablePanel]:
        """Return the tables: the paused ones, those not ready yet, the others."""
        bounds = {"limit": TABLES, "windows": SEARCHED_WINDOWS}
        return self._transaction.records(TablePanel, "page/tables", name=name, **bounds)

    def rebuilds(self, name: str, oid: int | None = None) -> list[RebuildPanel]:
        """Return the open rebuilds, of one table or of all, oldest first."""
        return self._transaction.records(RebuildPanel, "page/rebuilds", name=name, oid=oid, limit=TABLES)

    def events(self, name: str, oid: int | None = None) -> list[EventPanel]:
        """Return the newest events, of one table or of all, newest first."""
        return self._transaction.records(EventPanel, "page/events", name=name, oid=oid, limit=EVENTS)

    def schema_changes(self, name: str, oid: int | None = None) -> list[SchemaChangePanel]:
        """Return the newest changes of the shape of one table, or of all."""
        bounds = {"slug": "schema-followed", "limit": EVENTS}
        return self._transaction.records(SchemaChangePanel, "page/schema_changes", name=name, oid=oid, **bounds)

    def table(self, name: str, oid: int) -> OneTable:
        """Read more of one table."""
        return OneTable(self._transaction, name, oid)

    def maintenances(self, name: str) -> list[MaintenanceRecord]:
        """Return the newest run of maintenance, if there was any."""
        return self._transaction.records(MaintenanceRecord, "maintenance/maintenances", name=name, limit=1)

    def work(self, name: str) -> list[WorkNote]:
        """Return how far tasks said that they are; those of tasks that were killed are among them."""
        return self._transaction.records(WorkNote, "work/under_way", name=name)

    def slots(self, name: str | None = None) -> dict[str, SlotPanel]:
        """Return the newest look at the own slot of every pipeline, or of one, where there was any."""
        found = self._transaction.records(SlotPanel, "page/slots", name=name)
        return {each.pipeline: each for each in found}

    def alarms(self, name: str | None = None) -> list[AlarmPanel]:
        """Return the open alarms of every pipeline, or of one: by pipeline, the worst and oldest first."""
        return self._transaction.records(AlarmPanel, "page/alarms", name=name, limit=ALARMS)

    def slot_peaks(self, name: str, *, since: datetime, step: timedelta) -> list[SlotStep]:
        """Return what the own slot kept since then, in steps."""
        return self._transaction.records(
            SlotStep, "page/slot_series", name=name, since=since, step=step.total_seconds()
        )

    def lake(self, name: str, *, since: datetime, step: timedelta) -> list[LakeStep]:
        """Return how the lake stood since then, in steps."""
        seconds = step.total_seconds()
        return self._transaction.records(LakeStep, "page/lake_series", name=name, since=since, step=seconds)

    def captured(self, name: str, *, since: datetime, step: timedelta) -> list[CaptureStep]:
        """Return what was captured since then, in steps."""
        seconds = step.total_seconds()
        return self._transaction.records(CaptureStep, "page/capture_series", name=name, since=since, step=seconds)


class PageQueries(Part):
    """Open the ledger for a page."""

    @contextmanager
    def panels(self) -> Iterator[Panel]:
        """Let the block read what a page shows, as of one moment and on one connection."""
        with self.transaction(frozen=True) as transaction:
            yield Panel(transaction)
