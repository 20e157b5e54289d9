"""What the page asks: pipeline files for what should be, ledgers for what is; one transaction per ledger and page.

A ledger that does not answer is a problem to show, not the end of the page: the other ledgers' pipelines are there.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from penstock.codec import fields_of
from penstock.config import model
from penstock.config.connections import Resolver
from penstock.config.files import read_folder
from penstock.config.validators import NAME
from penstock.errors import ConfigError, LedgerError, NoLedgerError
from penstock.flow.health.airflow_state import AirflowQuery, AirflowState
from penstock.ledger import Ledger
from penstock.ledger.page import Panel, PipelineStatus
from penstock.page.advice import advice, table_advice
from penstock.page.pipeline import (
    IDENTITIES,
    Pipeline,
    column,
    comparison,
    complete_as_of,
    known_pipeline,
    seconds_since,
    under_way,
    unknown_pipeline,
)
from penstock.page.settings import settings

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
    pipelines: list[Pipeline]
    problems: list[Problem]


Page = dict[str, Any]
"""What the page of a pipeline or of a table shows by its names, as HTML and as JSON; every time of it is held against `at`. Of charts it has the columns, each under its
name in the ledger's statement, with `hours` and `step_seconds`; empty steps are left out."""
_LISTS = ("tables", "rebuilds", "windows", "cuts", "events", "schema_changes")


def _silent(_pipelines: Collection[str], _with_tasks: bool) -> AirflowState | None:  # as `AirflowQuery`
    return None


@dataclass(frozen=True)
class Deployment:
    """Read the pipelines of one deployment; `connections` answers for the ids that pipeline files name, `airflow` for DAGs and tasks."""

    folder: Path
    environment: Mapping[str, str]
    connections: Resolver
    airflow: AirflowQuery = _silent
    _ledgers: dict[str, Ledger] = field(default_factory=dict, init=False, repr=False)

    def overview(self) -> Overview:
        """Return every pipeline that has a file or that a ledger of theirs knows."""
        now = datetime.now(UTC)
        files, problems = self._files()
        airflow = self.airflow(files, False)
        shown: list[Pipeline] = []
        for conn_id in sorted({pipeline.ledger.connection for pipeline in files.values()}):
            ours = {name: each for name, each in files.items() if each.ledger.connection == conn_id}
            try:
                shown += self._known(conn_id, ours, now, airflow)
            except (ConfigError, LedgerError) as error:
                problems.append(Problem(error.slug, error.message, sorted(ours)))
        return Overview(now, sorted(shown, key=_urgency), problems)

    def pipeline(self, name: str) -> Page:
        """Return everything of one pipeline but its charts; raises ConfigError("config-invalid") for an unknown one, and LedgerError."""
        now = datetime.now(UTC)
        files, _ = self._files()
        conn_id = self._ledger_of(name, files)
        without_channel = files[name].health.without_channel if name in files else ()
        airflow = self.airflow([name], True)
        page: Page = {"at": now, "settings": settings(files[name]) if name in files else []}
        with suppress(NoLedgerError), self._ledger(conn_id).page.panels() as panel:
            if rows := panel.pipelines(name):
                (shown,) = _shown(panel, rows, files, airflow, now=now, name=name)
                tables = panel.tables(name)
                return page | {
                    "pipeline": shown,
                    "advice": advice(shown, tables, without_channel),
                    "tables": tables,
                    "rebuilds": panel.rebuilds(name),
                    "windows": panel.windows(name),
                    "cuts": panel.cuts(name),
                    "events": panel.events(name),
                    "schema_changes": panel.schema_changes(name),
                    "work": under_way(name, airflow, panel.work(name), files),
                    "last_maintenance": next(iter(panel.maintenances(name)), None),
                }
        shown = unknown_pipeline(files[name], airflow)
        return page | {
            "pipeline": shown,
            "advice": advice(shown, [], without_channel),
            "work": under_way(name, airflow, [], files),
            "last_maintenance": None,
            **{each: [] for each in _LISTS},
        }

    def table(self, name: str, oid: int) -> Page:
        """Return everything of one table but its charts; raises as `pipeline` does, and ConfigError("table-unknown") for one that it does not have.

        The table is complete as of `as_of`, the source's time; `key` are the columns by which its changes find their rows, where
        `identity` says so. `snapshots` and `delete_files` are of the last maintenance. `compared` says how far it is verified, or what
        the newest comparison came to where not all rows are.
        """
        now = datetime.now(UTC)
        files, _ = self._files()
        conn_id = self._ledger_of(name, files, oid)
        airflow = self.airflow([name], False)
        with self._ledger(conn_id).page.panels() as panel:
            rows = panel.pipelines(name)
            facts = panel.table_details(name, oid) if rows else None
            if facts is None:
                raise _no_table(name, oid)
            (of,) = _shown(panel, rows, files, airflow, now=now, name=name)
            (table,), findings = panel.tables(name, oid), panel.findings(name, oid)
            maintained = next((run.figures(table.target) for run in panel.maintenances(name)), {})
            as_of = complete_as_of(table, facts, of)
            compared_at, compared = comparison(table, findings)
            return {
                "at": now,
                "pipeline": of,
                "table": table,
                "identity": IDENTITIES[facts.identity],
                "key": [each.name for each in facts.columns if each.key],
                "as_of": as_of,
                "freshness_seconds": seconds_since(as_of, now),
                "compared_at": compared_at,
                "compared": compared,
                **fields_of(facts, "files paused_at moved_at copy"),
                "snapshots": maintained.get("snapshots"),
                "delete_files": maintained.get("delete_files"),
                "advice": table_advice(of, table),
                "columns": [column(each) for each in facts.columns],
                "cuts": panel.table_cuts(name, oid),
                "findings": findings,
                "fetches": panel.fetches(name, oid),
                "rebuilds": panel.rebuilds(name, oid),
                "schema_changes": panel.schema_changes(name, oid),
                "events": panel.events(name, oid),
            }

    def table_series(self, name: str, oid: int, hours: int) -> Page:
        """Return a table's charts over the last hours; raises as `table` does."""
        step, since = _steps(hours)
        files, _ = self._files()
        with self._ledger(self._ledger_of(name, files, oid)).page.panels() as panel:
            if panel.table_details(name, oid) is None:
                raise _no_table(name, oid)
            return _series(hours, step) | panel.table_series(name, oid, since=since, step=step)

    def series(self, name: str, hours: int) -> Page:
        """Return a pipeline's charts over the last hours, with the slot's limits in force now; raises as `pipeline` does."""
        step, since = _steps(hours)
        files, _ = self._files()
        with self._ledger(self._ledger_of(name, files)).page.panels() as panel:
            slot = panel.slots(name).get(name)
            return {
                **_series(hours, step),
                "warn_bytes": slot["warn_bytes"] if slot else None,
                "critical_bytes": slot["critical_bytes"] if slot else None,
                **panel.series(name, since=since, step=step),
            }

    def _known(
        self, conn_id: str, files: Mapping[str, model.Pipeline], now: datetime, airflow: AirflowState | None
    ) -> list[Pipeline]:
        shown: list[Pipeline] = []
        with suppress(NoLedgerError), self._ledger(conn_id).page.panels() as panel:
            shown = _shown(panel, panel.pipelines(), files, airflow, now=now)
        known = {each.name for each in shown}
        missing = [unknown_pipeline(each, airflow) for name, each in files.items() if name not in known]
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
        found = read_folder(self.folder, self.environment, _unless_known)
        return found.pipelines, [Problem(error.slug, error.message, []) for error in found.problems]


def _shown(
    panel: Panel,
    rows: list[PipelineStatus],
    files: Mapping[str, model.Pipeline],
    airflow: AirflowState | None,
    *,
    now: datetime,
    name: str | None = None,
) -> list[Pipeline]:
    """Add to each pipeline what slot health knows of it."""
    slots, alarms = panel.slots(name), panel.alarms(name)
    return [
        known_pipeline(
            row,
            now,
            file=files.get(row.name),
            slot=slots.get(row.name),
            alarms=[each for each in alarms if each.pipeline == row.name],
            airflow=airflow,
        )
        for row in rows
    ]


def _steps(hours: int) -> tuple[timedelta, datetime]:
    """Return the length of a chart's steps, and where its first begins."""
    return timedelta(hours=hours) / POINTS, datetime.now(UTC) - timedelta(hours=hours)


def _series(hours: int, step: timedelta) -> dict[str, Any]:
    return {"hours": hours, "step_seconds": step.total_seconds()}


def _no_table(name: str, oid: int) -> ConfigError:
    return ConfigError(
        "table-unknown", f"expected a table of the pipeline {name}, found none with oid {oid}; see the list on its page"
    )


def _unless_known(path: Path, environment: Mapping[str, str]) -> model.Pipeline:
    """Read a file again only when it has changed: every page asks for all of them."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0  # the reader says what it is
    return _load(path, changed, tuple(sorted(environment.items())))


@lru_cache(maxsize=256)
def _load(path: Path, _changed: int, environment: tuple[tuple[str, str], ...]) -> model.Pipeline:
    return model.load_pipeline(path, dict(environment))


def _urgency(shown: Pipeline) -> tuple[int, str]:
    return ["critical", "warn", "ok", "idle"].index(shown.grade), shown.name
