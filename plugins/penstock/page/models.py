"""What the page shows, as plain values: the same models are the page's HTML and its JSON.

LSNs are text, times are UTC, every number says its unit in its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Grade = Literal["ok", "warn", "critical", "idle"]
"""How a pipeline is doing, for its colour; `idle` is one that is not meant to move."""


@dataclass(frozen=True)
class TaskRef:
    """Lead to a run of Airflow; `task` is the one whose log tells, empty where only the run is known."""

    dag: str
    run_id: str
    task: str


@dataclass(frozen=True)
class Lack:
    """Show what a pipeline lacks to be healthy; `verb` is that of the DAG that mends it."""

    what: str
    title: str
    reason: str
    verb: str | None
    runbook: str | None


@dataclass(frozen=True)
class Slot:
    """Show what the last health check saw of the slot; bytes are of the source's WAL, ages in transactions.

    The limits are those that were in force at that check.
    """

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
    confirmed_lsn: str | None
    restart_lsn: str | None
    flushed_lsn: str


@dataclass(frozen=True)
class Alarm:
    """Show one open alarm; `dag` is the DAG that ends it or shows why it lasts, `failed` the run that it tells of, `task` who opened it."""

    slug: str
    level: Literal["warn", "critical"]
    subject: str
    message: str
    worsens: str
    opened_at: datetime
    open_seconds: float
    dag: str | None
    failed: TaskRef | None
    task: TaskRef | None


@dataclass(frozen=True)
class Pipeline:
    """Show one pipeline at a glance.

    `as_of` is the time up to which the lake has every change of the source, `freshness_seconds` its age.
    A merge keeps its Spark application until `spark_until` if nothing is landed, and has made `spark_cuts` with it.
    A pipeline that runs is healthy where `lacks` is empty; `halted_by` is the task that met what halted it. Where the source has no
    slot of its name any more `slot_is_gone`, and there is no `slot`, whatever the last look at it showed.
    """

    name: str
    grade: Grade
    state: str
    halted_slug: str | None
    halted_reason: str | None
    database: str | None
    slot_name: str
    publication: str
    has_file: bool
    position: str | None
    cut_lsn: str | None
    cut_at: datetime | None
    captured_at: datetime | None
    as_of: datetime | None
    freshness_seconds: float | None
    unmerged_windows: int
    unmerged_changes: int
    unmerged_bytes: int
    tables: int
    tables_ready: int
    tables_paused: int
    slot: Slot | None
    alarms: tuple[Alarm, ...]
    spark_until: datetime | None = None
    spark_cuts: int | None = None
    lacks: tuple[Lack, ...] = ()
    halted_by: TaskRef | None = None
    slot_is_gone: bool = False


@dataclass(frozen=True)
class Window:
    """Show one window; `changes_per_second` is None for one that held no change."""

    from_lsn: str
    upto_lsn: str
    wal_bytes: int
    state: str
    changes: int
    bytes: int
    transactions: int
    seconds: float | None
    changes_per_second: float | None
    planned_at: datetime
    source_time: datetime | None
    task: TaskRef | None


@dataclass(frozen=True)
class Cut:
    """Show one cut; `seconds` is from planning its merge to publishing it, `delay_seconds` its age when it was published.

    `oldest_seconds` is how long the change that waited longest took from its commit at the source to this cut.
    """

    lsn: str
    published_at: datetime
    changes: int
    tables: int
    seconds: float | None
    changes_per_second: float | None
    delay_seconds: float | None
    oldest_seconds: float | None
    task: TaskRef | None


@dataclass(frozen=True)
class Table:
    """Show one table; `changes` and `changed_at` cover the newest windows only, `rows` and `bytes` are its size in the lake.

    All its rows were seen to equal the source's at `verified_through` or later; `differs` says that some do not.
    `state` is the ledger's, or `waiting` for one that joined and has no copy yet, `leaving` for one that left.
    `conflicts` are changes since its copy that met other rows than they should, by kind; `suspected` says that no
    comparison has found all rows equal since. `misfits` are values that did not fit.
    """

    oid: int
    name: str
    target: str
    state: str
    complete_through: str | None
    changed_at: datetime | None
    changes: int | None
    rows: int | None
    bytes: int | None
    paused_slug: str | None
    paused_reason: str | None
    verified_through: str | None
    verified_at: datetime | None
    differs: bool
    conflicts: dict[str, int]
    misfits: int
    suspected: bool
    paused_by: TaskRef | None = None


@dataclass(frozen=True)
class Rebuild:
    """Show a table that is being rebuilt: built through `through_lsn` on its way to `end_lsn`, with so many rows so far."""

    id: str
    oid: int
    table: str
    kind: str
    state: str
    place: str
    through_lsn: str | None
    end_lsn: str | None
    rows: int
    copied_rows: int | None
    started_at: datetime
    changed_at: datetime


@dataclass(frozen=True)
class Event:
    """Show one event."""

    at: datetime
    level: str
    slug: str
    message: str
    oid: int | None
    table: str | None
    task: TaskRef | None


@dataclass(frozen=True)
class SchemaChange:
    """Show a change of a table's shape at the source; `cost` has what was copied for it, nothing where it was metadata alone."""

    at: datetime
    oid: int
    table: str
    rule: str
    message: str
    xid: int | None
    cost: Mapping[str, int]
