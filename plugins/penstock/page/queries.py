"""What the page asks: pipeline files for what should be, ledgers for what is; one transaction per ledger and page.

A ledger that does not answer is a problem to show, not the end of the page: the other ledgers' pipelines are there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from penstock.config import model
from penstock.config.connections import Resolver
from penstock.config.files import read_folder
from penstock.config.validators import NAME
from penstock.errors import ConfigError, LedgerError, NoLedgerError
from penstock.flow.health.airflow_state import AirflowState, Ask
from penstock.ledger import Ledger
from penstock.ledger.page import Panel, PipelinePanel
from penstock.page import models, table_views, views
from penstock.page.advice import Advice, advice
from penstock.page.lacks import lacks
from penstock.page.maintenance import LastMaintenance, last_maintenance
from penstock.page.settings import Setting, settings
from penstock.page.table_models import TablePage, TableSeries
from penstock.page.work import Work, under_way

POINTS = 300
"""A chart has at most so many points, whatever time it spans."""
SPANS = {1: "1 h", 6: "6 h", 24: "24 h", 168: "7 d", 720: "30 d"}
"""The hours that a chart may span."""
_OIDS = 1 << 32


@dataclass(frozen=True)
class Problem:
    """Say why something cannot be shown, under its runbook's name, and which pipelines it hides."""

    slug: str
    message: str
    pipelines: list[str]


@dataclass(frozen=True)
class Overview:
    """Hold every pipeline at a glance."""

    at: datetime
    pipelines: list[models.Pipeline]
    problems: list[Problem]


@dataclass(frozen=True)
class PipelinePage:
    """Hold everything of one pipeline but its charts."""

    at: datetime
    pipeline: models.Pipeline
    advice: list[Advice]
    tables: list[models.Table]
    rebuilds: list[models.Rebuild]
    windows: list[models.Window]
    cuts: list[models.Cut]
    events: list[models.Event]
    schema_changes: list[models.SchemaChange]
    last_maintenance: LastMaintenance | None = None
    work: list[Work] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)


@dataclass(frozen=True)
class Series:
    """Hold a pipeline's charts as columns; times are seconds since 1970, steps without a value are left out.

    The slot's points are the peaks of their steps, in bytes; `warn_bytes` and `critical_bytes` are the limits in force
    now. Of capture, `changes` are sums, `window_seconds` the longest window of the step.
    Of the lake, as slot health saw it, `behind_*` are peaks, sizes are those at the step's end, the rest sums. CPU is that of the
    tasks that ended: of their processes on Airflow's workers and of what these waited for, such as Spark's driver.
    """

    hours: int
    step_seconds: float
    slot_time: list[float]
    unread_bytes: list[int | None]
    retained_bytes: list[int | None]
    warn_bytes: int | None
    critical_bytes: int | None
    capture_time: list[float]
    changes: list[int]
    window_seconds: list[float | None]
    lake_time: list[float]
    behind_median_seconds: list[float | None]
    behind_worst_seconds: list[float | None]
    lake_bytes: list[int | None]
    landing_bytes: list[int]
    cuts: list[int]
    cut_changes: list[int]
    cut_seconds: list[float]
    merge_cpu_seconds: list[float | None]
    capture_cpu_seconds: list[float | None]


def _unknown(pipeline: model.Pipeline, airflow: AirflowState | None) -> models.Pipeline:
    """Show a pipeline that its ledger does not know, or not yet."""
    starts = airflow is not None and airflow.dag(f"{pipeline.name}.bootstrap").under_way
    return views.unknown(pipeline.name, pipeline.slot, pipeline.publication, starts=starts)


def _silent(_pipelines: Collection[str], _with_tasks: bool) -> AirflowState | None:  # as `Ask`
    return None


@dataclass(frozen=True)
class Deployment:
    """Read the pipelines of one deployment; `connections` answers for the ids that pipeline files name, `airflow` for DAGs and tasks."""

    folder: Path
    environment: Mapping[str, str]
    connections: Resolver
    airflow: Ask = _silent
    _ledgers: dict[str, Ledger] = field(default_factory=dict, init=False, repr=False)

    def overview(self) -> Overview:
        """Return every pipeline that has a file or that a ledger of theirs knows."""
        now = datetime.now(UTC)
        files, problems = self._files()
        airflow = self.airflow(files, False)
        shown: list[models.Pipeline] = []
        for conn_id in sorted({pipeline.ledger.connection for pipeline in files.values()}):
            ours = {name: each for name, each in files.items() if each.ledger.connection == conn_id}
            try:
                shown += self._known(conn_id, ours, now, airflow)
            except (ConfigError, LedgerError) as error:
                problems.append(Problem(error.slug, error.message, sorted(ours)))
        return Overview(now, sorted(shown, key=_urgency), problems)

    def pipeline(self, name: str) -> PipelinePage:
        """Return one pipeline; raises ConfigError("config-invalid") for an unknown one, and LedgerError."""
        now = datetime.now(UTC)
        files, _ = self._files()
        conn_id = self._ledger_of(name, files)
        unheard = files[name].health.unheard if name in files else ()
        airflow = self.airflow([name], True)
        known = settings(files[name]) if name in files else []
        with suppress(NoLedgerError), self._ledger(conn_id).page.panels() as panel:
            if rows := panel.pipelines(name):
                (shown,) = _shown(panel, rows, files, airflow, now=now, name=name)
                tables = [views.table(row, row.changes, row.changed_at) for row in panel.tables(name)]
                return PipelinePage(
                    at=now,
                    pipeline=shown,
                    advice=advice(shown, tables, unheard),
                    tables=tables,
                    rebuilds=[views.rebuild(row) for row in panel.rebuilds(name)],
                    windows=[views.window(row) for row in panel.windows(name)],
                    cuts=[views.cut(row) for row in panel.cuts(name)],
                    events=[views.event(row) for row in panel.events(name)],
                    schema_changes=[views.schema_change(row) for row in panel.schema_changes(name)],
                    work=under_way(name, airflow, panel.work(name), files),
                    settings=known,
                    last_maintenance=next((last_maintenance(run) for run in panel.maintenances(name)), None),
                )
        shown = _unknown(files[name], airflow)
        work = under_way(name, airflow, [], files)
        return PipelinePage(now, shown, advice(shown, [], unheard), [], [], [], [], [], [], work=work, settings=known)

    def table(self, name: str, oid: int) -> TablePage:
        """Return one table of a pipeline; raises as `pipeline` does, ConfigError("table-unknown") for one that it does not have."""
        now = datetime.now(UTC)
        files, _ = self._files()
        conn_id = self._ledger_of(name, files, oid)
        airflow = self.airflow([name], False)
        with self._ledger(conn_id).page.panels() as panel:
            rows, one = panel.pipelines(name), panel.table(name, oid)
            facts = one.facts() if rows else None
            if facts is None:
                raise _no_table(name, oid)
            (of,) = _shown(panel, rows, files, airflow, now=now, name=name)
            kept = next((last_maintenance(run) for run in panel.maintenances(name)), None)
            return table_views.page(
                now,
                of,
                facts,
                maintained=kept.table(".".join(facts.target)) if kept else None,
                cuts=one.cuts(),
                findings=one.findings(),
                fetches=one.fetches(),
                rebuilds=panel.rebuilds(name, oid),
                schema_changes=panel.schema_changes(name, oid),
                events=panel.events(name, oid),
            )

    def table_series(self, name: str, oid: int, hours: int) -> TableSeries:
        """Return a table's charts over the last hours; raises as `table` does."""
        step, since = _steps(hours)
        files, _ = self._files()
        with self._ledger(self._ledger_of(name, files, oid)).page.panels() as panel:
            one = panel.table(name, oid)
            if one.facts() is None:
                raise _no_table(name, oid)
            found = one.series(since=since, step=step)
        return TableSeries(
            hours=hours,
            step_seconds=step.total_seconds(),
            time=[each.at.timestamp() for each in found],
            inserts=[each.inserts for each in found],
            updates=[each.updates for each in found],
            deletes=[each.deletes for each in found],
            rows=[each.rows for each in found],
            bytes=[each.bytes for each in found],
        )

    def series(self, name: str, hours: int) -> Series:
        """Return a pipeline's charts over the last hours; raises as `pipeline` does."""
        step, since = _steps(hours)
        files, _ = self._files()
        with self._ledger(self._ledger_of(name, files)).page.panels() as panel:
            captured = panel.captured(name, since=since, step=step)
            lake = panel.lake(name, since=since, step=step)
            peaks = panel.slot_peaks(name, since=since, step=step)
            newest = [views.slot(each) for each in panel.slots(name).values()]
        return Series(
            hours=hours,
            step_seconds=step.total_seconds(),
            slot_time=[each.at.timestamp() for each in peaks],
            unread_bytes=[each.unread for each in peaks],
            retained_bytes=[each.retained for each in peaks],
            warn_bytes=newest[0].warn_bytes if newest else None,
            critical_bytes=newest[0].critical_bytes if newest else None,
            capture_time=[each.at.timestamp() for each in captured],
            changes=[each.changes for each in captured],
            window_seconds=[each.seconds for each in captured],
            lake_time=[each.at.timestamp() for each in lake],
            behind_median_seconds=[each.median_seconds for each in lake],
            behind_worst_seconds=[each.worst_seconds for each in lake],
            lake_bytes=[each.lake_bytes for each in lake],
            landing_bytes=[each.landing_bytes for each in lake],
            cuts=[each.cuts for each in lake],
            cut_changes=[each.changes for each in lake],
            cut_seconds=[each.cut_seconds for each in lake],
            merge_cpu_seconds=[each.merge_cpu_seconds for each in lake],
            capture_cpu_seconds=[each.capture_cpu_seconds for each in lake],
        )

    def _known(
        self, conn_id: str, files: Mapping[str, model.Pipeline], now: datetime, airflow: AirflowState | None
    ) -> list[models.Pipeline]:
        shown: list[models.Pipeline] = []
        with suppress(NoLedgerError), self._ledger(conn_id).page.panels() as panel:
            shown = _shown(panel, panel.pipelines(), files, airflow, now=now)
        known = {each.name for each in shown}
        missing = [_unknown(each, airflow) for name, each in files.items() if name not in known]
        return missing + shown

    def _ledger_of(self, name: str, files: Mapping[str, model.Pipeline], oid: int = 0) -> str:
        """Return the connection of the ledger that knows a pipeline: its file's, or one that has it without a file.

        What can be neither the name of one nor a table's oid is not asked for.
        """
        if not 0 <= oid < _OIDS:
            raise _no_table(name, oid)
        if name in files:
            return files[name].ledger.connection
        ledgers = {each.ledger.connection for each in files.values()} if NAME.matches(name) else set()
        for conn_id in sorted(ledgers):
            with suppress(NoLedgerError), self._ledger(conn_id).page.panels() as panel:
                if panel.pipelines(name):
                    return conn_id
        raise ConfigError("config-invalid", f"expected a file in {self.folder} that defines pipeline {name}")

    def _ledger(self, conn_id: str) -> Ledger:
        """Return a ledger, and keep it while its connection stays what it is: its revision is checked once."""
        connection = self.connections(conn_id)
        kept = self._ledgers.get(conn_id)
        if kept is None or kept.connection != connection:
            kept = self._ledgers[conn_id] = Ledger(connection)
        return kept

    def _files(self) -> tuple[Mapping[str, model.Pipeline], list[Problem]]:
        found = read_folder(self.folder, self.environment, _read)
        return found.pipelines, [Problem(error.slug, error.message, []) for error in found.problems]


def _shown(
    panel: Panel,
    rows: list[PipelinePanel],
    files: Mapping[str, model.Pipeline],
    airflow: AirflowState | None,
    *,
    now: datetime,
    name: str | None = None,
) -> list[models.Pipeline]:
    """Add to each pipeline what slot health knows of it."""
    slots, alarms = panel.slots(name), panel.alarms(name)
    shown = []
    for row in rows:
        slot = views.slot(slots[row.name]) if row.name in slots else None
        found = lacks(row, files.get(row.name), slot.seen_at if slot else None, airflow, now)
        ours = [views.alarm(each, now) for each in alarms if each.pipeline == row.name]
        shown.append(views.pipeline(row, now, has_file=row.name in files, slot=slot, alarms=ours, lacks=found))
    return shown


def _steps(hours: int) -> tuple[timedelta, datetime]:
    """Return the length of a chart's steps, and where its first begins."""
    return timedelta(hours=hours) / POINTS, datetime.now(UTC) - timedelta(hours=hours)


def _no_table(name: str, oid: int) -> ConfigError:
    return ConfigError(
        "table-unknown", f"expected a table of the pipeline {name}, found none with oid {oid}; see the list on its page"
    )


def _read(path: Path, environment: Mapping[str, str]) -> model.Pipeline:
    """Read a file again only when it has changed: every page asks for all of them."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0  # the reader says what it is
    return _load(path, changed, tuple(sorted(environment.items())))


@lru_cache(maxsize=256)
def _load(path: Path, _changed: int, environment: tuple[tuple[str, str], ...]) -> model.Pipeline:
    return model.load_pipeline(path, dict(environment))


def _urgency(shown: models.Pipeline) -> tuple[int, str]:
    return ["critical", "warn", "ok", "idle"].index(shown.grade), shown.name
