"""What a page shows of the ledger: one bounded query per panel, all of one page read at one moment.

A record is what the page shows of it, as HTML and as JSON: every number says its unit in its name, times of charts are seconds since
1970. Nothing here reads a list of files or a row of anybody's table; sums and steps of time are made by the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from penstock.conditions import ALARMS
from penstock.conditions import Level as AlarmLevel
from penstock.ledger.maintenance import MaintenanceRecord
from penstock.ledger.records import Level, Row, TaskRef, WindowState
from penstock.ledger.session import Part, Transaction
from penstock.ledger.table_page import OneTable, TablePanel
from penstock.ledger.table_records import LoadCause, LoadState
from penstock.ledger.work import WorkNote
from penstock.lsn import Lsn

WINDOWS = 20
CUTS = 20
EVENTS = 40
OPEN_ALARMS = 200
TABLES = 5000
SEARCHED_WINDOWS = 100
"""So many of the newest windows with changes are searched for a table's last change."""


@dataclass(frozen=True, kw_only=True)
class PipelinePanel(Row):
    """Hold where a pipeline stands; one that no ledger knows has its names only.

    `position` is the end of the newest staged window, `as_of` the source's time up to which the lake has every change, as the last
    look at an idle source renews it; the unmerged windows are those with changes after the newest cut. A merge keeps its Spark
    application until `spark_until` if nothing is landed, None where none does, and has made `spark_cuts` with it. `halted_by` is the
    task that met what halted it.
    """

    name: str
    state: str
    slot_name: str
    publication: str
    database: str | None = None
    created_at: datetime | None = None
    halted_slug: str | None = None
    halted_reason: str | None = None
    halted_by: TaskRef | None = None
    position: Lsn | None = None
    cut_lsn: Lsn | None = None
    cut_at: datetime | None = None
    captured_at: datetime | None = None
    as_of: datetime | None = None
    unmerged_windows: int = 0
    unmerged_changes: int = 0
    unmerged_bytes: int = 0
    unmerged_since: datetime | None = None
    tables: int = 0
    tables_ready: int = 0
    tables_paused: int = 0
    spark_until: datetime | None = None
    spark_cuts: int | None = None


@dataclass(frozen=True)
class WindowPanel(Row):
    """Hold one window without its files; `changes_per_second` is None for one that held no change."""

    from_lsn: Lsn
    upto_lsn: Lsn
    wal_bytes: int
    state: WindowState
    changes: int
    bytes: int
    transactions: int
    seconds: float | None
    changes_per_second: float | None
    planned_at: datetime
    source_time: datetime | None
    task: TaskRef | None


@dataclass(frozen=True)
class CutPanel(Row):
    """Hold one cut; `seconds` is from planning its merge to publishing it, `delay_seconds` its age when it was published.

    `oldest_seconds` is how long the change that waited longest took from its commit at the source to this cut. What is not known is
    None, as the age of a cut that ends with no window.
    """

    lsn: Lsn
    published_at: datetime
    changes: int
    tables: int
    seconds: float | None
    changes_per_second: float | None
    delay_seconds: float | None
    oldest_seconds: float | None
    task: TaskRef | None


@dataclass(frozen=True)
class RebuildPanel(Row):
    """Hold one open rebuild: built through `through_lsn` on its way to `end_lsn`; `rows` are those brought so far."""

    id: str
    oid: int
    table: str
    kind: LoadCause
    state: LoadState
    place: str
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
    level: Level
    slug: str
    message: str
    oid: int | None
    table: str | None
    task: TaskRef | None


@dataclass(frozen=True)
class SchemaChangePanel(Row):
    """Hold a change of a table's shape that the lake follows; `cost` has what was copied for it, nothing where it was metadata alone."""

    at: datetime
    oid: int
    table: str
    rule: str
    message: str
    xid: int | None
    cost: dict[str, int]


@dataclass(frozen=True)
class SlotPanel(Row):
    """Hold what the last health check saw of a pipeline's own slot; bytes are of the source's WAL, ages in transactions.

    The limits are those that were in force at that check.
    """

    pipeline: str
    seen_at: datetime
    unread_bytes: int | None
    retained_bytes: int | None
    warn_bytes: int | None
    critical_bytes: int | None
    drop_bytes: int | None
    wal_status: str | None
    invalidation: str | None
    safe_wal_bytes: int | None
    active: bool
    inactive_since: datetime | None
    unchanged_since: datetime
    catalog_xmin_age: int | None
    spill_share: float | None
    confirmed_lsn: Lsn | None
    restart_lsn: Lsn | None
    flushed_lsn: Lsn


@dataclass(frozen=True)
class AlarmPanel(Row):
    """Hold one open alarm; `failed` is the run that it tells of, `task` who opened it.

    By the catalogue of conditions it gets worse as fast as `worsens` says; the DAG `dag` ends it or shows why it lasts.
    """

    pipeline: str
    slug: str
    level: AlarmLevel
    subject: str
    message: str
    worsens: str
    opened_at: datetime
    open_seconds: float
    dag: str | None
    failed: TaskRef | None
    task: TaskRef | None

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row, and look up its condition."""
        known = ALARMS.get(row["slug"])
        dag = f"{row['pipeline']}.{known.dag}" if known and known.dag else None
        return cls(**row, worsens=known.worsens if known else "unknown", dag=dag)


@dataclass(frozen=True)
class SlotStep(Row):
    """Hold what the slot kept in one step of time: the peaks."""

    slot_time: float
    unread_bytes: int | None
    retained_bytes: int | None


@dataclass(frozen=True)
class CaptureStep(Row):
    """Hold what was captured in one step of time: changes, and the longest window's seconds."""

    capture_time: float
    changes: int
    window_seconds: float | None


@dataclass(frozen=True)
class LakeStep(Row):
    """Hold how the lake stood in one step of time, as slot health saw it, and what was done in it.

    `behind_*` are peaks, sizes are those at the step's end, the rest sums. CPU is that of the tasks that ended: of their processes on
    Airflow's workers and of what these waited for, such as Spark's driver; it is unknown where nothing was counted before.
    """

    lake_time: float
    behind_median_seconds: float | None
    behind_worst_seconds: float | None
    lake_bytes: int | None
    landing_bytes: int
    cuts: int
    cut_changes: int
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

    def tables(self, name: str, oid: int | None = None) -> list[TablePanel]:
        """Return the tables: the paused ones, those not ready yet, the others; or one, whose changes are not searched for."""
        bounds = {"limit": TABLES, "windows": SEARCHED_WINDOWS if oid is None else 0}
        return self._transaction.records(TablePanel, "page/tables", name=name, oid=oid, **bounds)

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
        return self._transaction.records(AlarmPanel, "page/alarms", name=name, limit=OPEN_ALARMS)

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
