"""How pipelines stand, and what the page shows of the ledger: one bounded query per panel, all of one page read at one moment.

`PipelineStatus` is what everyone reads who is to say how a pipeline stands: status, slot health, its summary and gauges, the page. A
record is what the page shows of it, as HTML and as JSON: every number says its unit in its name, times of charts are seconds since
1970. Nothing here reads a list of files or a row of anybody's table; sums and steps of time are made by the server.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from penstock.conditions import LEVELS, Remedy
from penstock.ledger.health import AlarmRecord
from penstock.ledger.maintenance import MaintenanceRecord
from penstock.ledger.records import Row, TaskRef
from penstock.ledger.session import Part, Transaction
from penstock.ledger.work import WorkNote
from penstock.lsn import Lsn
from penstock.shapes.mirror_column import MirrorColumn

SHOWN = 20
EVENTS = 40
OPEN_ALARMS = 200
TABLES = 5000
SEARCHED_WINDOWS = 100
"""So many of the newest windows with changes are searched for a table's last change."""
Shown = dict[str, Any]
"""A row of which nothing is judged, by the columns of its statement, which say their units; as HTML and as JSON it is shown as it is."""
Columns = dict[str, list[Any]]


@dataclass(frozen=True, kw_only=True)
class PipelineStatus(Row):
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
class TablePanel(Row):
    """Hold one table; `changes` and `changed_at` cover the newest windows only, `rows` and `bytes` are its size in the lake.

    All its rows were seen to equal the source's at `verified_through` or later; `differs` says that some do not.
    `state` is the ledger's, or `waiting` for one that joined and has no copy yet, `leaving` for one that left.
    `conflicts` are changes since its copy that met other rows than they should, by kind; `suspected` says that no
    comparison has found all rows equal since. `misfits` are values that did not fit.
    """

    oid: int
    name: str
    target: str
    state: str
    complete_through: Lsn | None
    changed_at: datetime | None
    changes: int | None
    rows: int | None
    bytes: int | None
    paused_slug: str | None
    paused_reason: str | None
    remedy: Remedy | None
    verified_through: Lsn | None
    verified_at: datetime | None
    differs: bool
    conflicts: dict[str, int]
    misfits: int
    suspected: bool
    paused_by: TaskRef | None


@dataclass(frozen=True)
class LastCopy(Row):
    """Hold the last copy of a table, or the one under way: `seconds` is None until it has ended."""

    rows: int
    bytes: int
    lsn: Lsn
    started_at: datetime
    finished_at: datetime | None
    seconds: float | None


@dataclass(frozen=True)
class TableDetails(Row):
    """Hold what only the page of one table shows.

    The cut that moved it last was at `moved_at`. `paused_as_of` is the source's time through which a table that stays behind the
    cut is complete.
    """

    identity: str
    columns: tuple[MirrorColumn, ...]
    files: int | None
    paused_at: datetime | None
    moved_at: datetime | None
    copy: LastCopy | None
    paused_as_of: datetime | None


class Panel(Transaction):
    """Read panels inside one frozen transaction; where a table may be named by its oid, the rows are those of it alone."""

    def pipelines(self, name: str | None = None) -> list[PipelineStatus]:
        """Return every pipeline, or the one of this name."""
        return self.records(PipelineStatus, "page/pipelines", name=name)

    def window_totals(self, name: str) -> tuple[dict[str, int], int]:
        """Return the windows of the present era by state, and how many end after the newest cut, those without changes too."""
        ((windows, unmerged),) = self.rows("page/window_totals", name=name)
        return windows, unmerged

    def windows(self, name: str) -> list[Shown]:
        """Return the newest windows, newest first."""
        return self.shown("page/windows", name=name, limit=SHOWN)

    def cuts(self, name: str) -> list[Shown]:
        """Return the newest cuts, newest first."""
        return self.shown("page/cuts", name=name, limit=SHOWN)

    def tables(self, name: str, oid: int | None = None) -> list[TablePanel]:
        """Return the tables: the paused ones, those not ready yet, the others; or one, whose changes are not searched for."""
        bounds = {"limit": TABLES, "windows": SEARCHED_WINDOWS if oid is None else 0}
        return self.records(TablePanel, "page/tables", name=name, oid=oid, **bounds)

    def rebuilds(self, name: str, oid: int | None = None) -> list[Shown]:
        """Return the open rebuilds, oldest first."""
        return self.shown("page/rebuilds", name=name, oid=oid, limit=TABLES)

    def events(
        self,
        name: str,
        oid: int | None = None,
        *,
        since: datetime | None = None,
        slugs: Sequence[str] | None = None,
        limit: int | None = EVENTS,
    ) -> list[Shown]:
        """Return the newest events, newest first: all, or those since a time, or of some slugs."""
        return self.shown("page/events", name=name, oid=oid, since=since, slugs=slugs, limit=limit)

    def schema_changes(self, name: str, oid: int | None = None) -> list[Shown]:
        """Return the newest changes of tables' shapes that the lake follows, newest first."""
        return self.shown("page/schema_changes", name=name, oid=oid, slug="schema-followed", limit=EVENTS)

    def maintenances(self, name: str) -> list[MaintenanceRecord]:
        """Return the newest run of maintenance, if there was any."""
        return self.records(MaintenanceRecord, "maintenance/maintenances", name=name, limit=1)

    def work(self, name: str) -> list[WorkNote]:
        """Return how far tasks said that they are, the oldest first; a task that was killed has left its notes."""
        return self.records(WorkNote, "work/under_way", name=name)

    def slots(self, name: str | None = None) -> dict[str, Shown]:
        """Return the newest look at the own slot of every pipeline, or of one, where there was any."""
        return {each["pipeline"]: each for each in self.shown("page/slots", name=name)}

    def alarms(self, name: str | None = None) -> list[AlarmRecord]:
        """Return the open alarms of every pipeline, or of one: the worst and oldest first."""
        found = self.records(AlarmRecord, "health/alarms", name=name, open=True, limit=OPEN_ALARMS)
        ours = (alarm for alarm in found if alarm.closed_at is None)
        return sorted(ours, key=lambda alarm: (-LEVELS.index(alarm.level), alarm.opened_at))

    def series(self, name: str, *, since: datetime, step: timedelta) -> Columns:
        """Return the columns of a pipeline's charts since then, in steps of time; steps in which nothing was are left out."""
        span = {"name": name, "since": since, "step": step.total_seconds()}
        charts = ("page/slot_series", "page/capture_series", "page/lake_series")
        return {key: values for chart in charts for key, values in self.columns(chart, **span).items()}

    def table_series(self, name: str, oid: int, *, since: datetime, step: timedelta) -> Columns:
        """Return the columns of a table's charts since then, as `series` does."""
        seconds = step.total_seconds()
        return self.columns("page/table_series", name=name, oid=oid, since=since, step=seconds)

    def table_details(self, name: str, oid: int) -> TableDetails | None:
        """Return what only the page of one table shows; None for one that the pipeline does not have."""
        return next(iter(self.records(TableDetails, "page/table_details", name=name, oid=oid)), None)

    def table_cuts(self, name: str, oid: int) -> list[Shown]:
        """Return the newest cuts that moved a table, newest first."""
        return self.shown("page/table_cuts", name=name, oid=oid, limit=SHOWN)

    def findings(self, name: str, oid: int) -> list[Shown]:
        """Return what the newest comparisons found of a table, newest first."""
        return self.shown("page/findings", name=name, oid=oid, limit=SHOWN)

    def fetches(self, name: str, oid: int) -> list[Shown]:
        """Return the newest fetches of a table's columns or partitions, newest first."""
        return self.shown("page/fetches", name=name, oid=oid, limit=SHOWN)


class PageQueries(Part):
    """Open the ledger for whoever shows it."""

    @contextmanager
    def panels(self) -> Iterator[Panel]:
        """Let the block read what a page shows, as of one moment and on one connection; so does whatever else it asks of the ledger
        inside of a `session`."""
        with self.transaction(frozen=True) as transaction:
            yield Panel(transaction.connection)

    def status(self, name: str) -> PipelineStatus | None:
        """Return how a pipeline stands, None for one that the ledger does not know."""
        return next(iter(self.records(PipelineStatus, "page/pipelines", name=name)), None)
