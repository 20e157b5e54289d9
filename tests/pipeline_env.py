"""A whole pipeline on real servers, small enough for a test: source, ledger, catalog, landing zone and Spark.

Spark's applications run inside the test's own session, from the same plan files and to the same result files as
under `spark-submit`; everything else is what a user runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import yaml

from penstock.config.connections import Connection
from penstock.config.model import Pipeline
from penstock.flow.capture import run as capture
from penstock.flow.capture.report import CaptureReport
from penstock.flow.changelog import run as changelog
from penstock.flow.changelog.coverage import Interval
from penstock.flow.context import Context
from penstock.flow.load import bootstrap
from penstock.flow.load import run as rebuild
from penstock.flow.maintain import run as maintain
from penstock.flow.merge import run as merge
from penstock.flow.spark_job import SparkJob
from penstock.flow.verify.compare import compare
from penstock.jobs.maintenance_plan import MaintenancePlan, MaintenanceResult
from penstock.jobs.plans import ChangelogPlan, ChangelogResult, CopyPlan, MergePlan, MergeResult
from penstock.ledger.changelogs import FillRecord
from penstock.ledger.table_records import TableRecord
from penstock.source import ddl_trigger
from stack.servers.postgres import Database
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import LakeCatalog

ROOT = Path(__file__).parents[1]


def connection(database: Any, conn_id: str) -> Connection:
    """Return a test database as Airflow would hand it to us."""
    server = database.server
    return Connection(conn_id, "127.0.0.1", server.port, "postgres", server.password, database.name)


def airflow_connection(database: Any, **words: str) -> str:
    """Return a test database as Airflow reads a connection from the environment."""
    known = connection(database, "place")
    fields = {"host": known.host, "port": known.port, "login": known.user, "password": known.password}
    return json.dumps({"conn_type": "postgres", "schema": known.database, **fields, **words})


def spark_variables(java_home: Path, conf: Path) -> dict[str, str]:
    """Return what a shell needs to submit to a Spark of its own."""
    spark = {"JAVA_HOME": str(java_home), "SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": sys.executable}
    return {**spark, "SPARK_LOCAL_IP": "127.0.0.1"}


def own_names(source: Any) -> dict[str, Any]:
    """Return settings that name slot and publication after the source: slots' names are unique in the whole cluster."""
    return {"source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"}}


def copy_without_spark(job: SparkJob) -> None:
    """Carry out a copy plan as Spark's tasks do, one range after another, in this process."""
    from penstock_spark.copy import Tables, land  # noqa: PLC0415

    plan = CopyPlan.loads(Path(job.arguments[1].removeprefix("file://")).read_text())
    source = Connection.from_prefix("SOURCE", job.environment)
    tables = Tables(plan, plan.landing_options)
    for each in plan.ranges:
        tables.landed(each, land(plan, each, source=source, options=plan.landing_options))


@dataclass
class PipelineEnv:
    """Hold one pipeline and its surroundings; `lines` is what it said."""

    source: Any  # a Database, or its coordinates in another process
    ledger: Any
    landing: Path
    name: str
    lake: LakeCatalog | None = None
    catalog: Any = None
    session: SparkSession | Callable[[], SparkSession] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def spark(self) -> SparkSession:
        """Return the session in which Spark's applications run; it begins when it is used."""
        assert self.session is not None
        return self.session() if callable(self.session) else self.session

    @property
    def ctx(self) -> Context:
        """Return a fresh context, as each task of Airflow has its own."""
        known = {"penstock_source": self.source, "penstock_ledger": self.ledger}
        if self.catalog is not None:
            known["penstock_catalog"] = self.catalog
        elif self.lake is not None:
            known["penstock_catalog"] = self.lake.database
        return Context(
            Pipeline.model_validate(
                {
                    "name": self.name,
                    "tables": {"include": ["public.*"]},
                    **self.settings,
                    "landing": {"uri": str(self.landing)} | self.settings.get("landing", {}),
                }
            ),
            lambda conn_id: connection(known[conn_id], conn_id),
            ROOT,
            {},
            self.lines.append,
        )

    def logged_in(self, conn_id: str = "penstock_source", **login: Any) -> Context:
        """Return a context with another login for one of the pipeline's connections."""
        ctx = self.ctx

        def resolve(asked: str) -> Connection:
            found = ctx.connections(asked)
            return replace(found, **login) if asked == conn_id else found

        return replace(ctx, connections=resolve)

    def prepare(self, statements: str = "") -> None:
        """Let the source do this, and make publication and slot, as the bootstrap DAG does first."""
        if statements:
            self.sql(statements)
        bootstrap.prepare(self.ctx)

    def begin(self, statements: str = "") -> None:
        """Let the source do this, and copy it without Spark, as the bootstrap DAG does before the first cut."""
        self.prepare(statements)
        bootstrap.copy(self.ctx, copy_without_spark)

    def bootstrap(self, statements: str = "", *, trigger: bool = False) -> None:
        """Let the source do this, with the event trigger from then on, and do what the bootstrap DAG does, first cut included."""
        if statements:
            self.sql(statements)
        if trigger:
            self.settings["source"] = {**self.settings["source"], "ddl_trigger": True}
            self.sql(ddl_trigger.install_statement())
        bootstrap.prepare(self.ctx)
        bootstrap.copy(self.ctx, self.submit)
        self.merge()

    def flush(self, statements: str = "") -> None:
        """Let the source do this, and bring every commit into the WAL: the tests' servers commit asynchronously."""
        if statements:
            self.sql(statements)
        self.sql("set synchronous_commit = on; select pg_logical_emit_message(true, 'flush', '')")

    def capture(self) -> CaptureReport:
        """Capture until caught up."""
        return capture.capture(self.ctx)

    def land(self, statements: str = "") -> CaptureReport:
        """Let the source do this, and capture all that has committed."""
        self.flush(statements)
        return self.capture()

    def follow(self, statements: str = "") -> None:
        """Let the source do this, and bring all that has committed into the lake."""
        self.land(statements)
        self.merge()

    def come_to_rest(self, rounds: int, statements: str = "select") -> None:
        """Let the source do this, then capture and merge until nothing is left to do; a merge may end at places in between."""
        self.sql(statements)
        for _ in range(rounds):
            self.land()
            while self.merge() is not None:
                pass

    def plan(self, *, force: bool = False, last: bool = False) -> str:
        """Plan a merge, of which there is something to do; return its attempt."""
        attempt = merge.plan(self.ctx, force=force, last=last)
        assert attempt is not None
        return attempt

    def prepared(self, *, force: bool = False, last: bool = False) -> str:
        """Plan a merge and let Spark prepare it; return its attempt, which no one has published yet."""
        attempt = self.plan(force=force, last=last)
        self.submit(merge.job(self.ctx, attempt))
        return attempt

    def merge(self, *, force: bool = False, last: bool = False) -> str | None:
        """Merge and publish what is due; return the attempt. The `last` merge of an era is that of a halted pipeline."""
        return merge.merge(self.ctx, self.submit, force=force, last=last)

    def maintain(self, *, tables: Sequence[str] = (), dry_run: bool = False) -> maintain.MaintenanceRun | None:
        """Maintain lake, landing zone and ledger, as the DAG does."""
        return maintain.maintain(self.ctx, self.submit, tables=tables, dry_run=dry_run)

    def submit(self, job: SparkJob) -> None:
        """Run a Spark application inside this process, with the environment that the job names."""
        from penstock_spark import changelog as changelogs  # noqa: PLC0415  # tests without Spark do not pay for it
        from penstock_spark import copy as copying  # noqa: PLC0415
        from penstock_spark import maintain as maintaining  # noqa: PLC0415
        from penstock_spark import merge as merging  # noqa: PLC0415

        paths = dict(zip(job.arguments[::2], job.arguments[1::2], strict=True))
        text = Path(paths["--plan"].removeprefix("file://")).read_text()
        if job.application.stem == "copy_tables":
            copying.run(self.spark, CopyPlan.loads(text), job.environment)
            return
        result: MergeResult | ChangelogResult | MaintenanceResult
        if job.application.stem == "maintain_tables":
            result = maintaining.run(self.spark, MaintenancePlan.loads(text), job.environment)
        elif job.application.stem == "changelog_tables":
            result = changelogs.run(self.spark, ChangelogPlan.loads(text), job.environment)
        else:
            result = merging.run(self.spark, MergePlan.loads(text), job.environment)
        Path(paths["--result"].removeprefix("file://")).write_text(result.dumps())

    def changelog(self, start: datetime, end: datetime) -> FillRecord:
        """Fill an interval of the changelogs."""
        return changelog.fill(self.ctx, Interval(start, end), self.submit)

    def believe(self, *tables: str) -> None:
        """Let the ledger believe that the pipeline itself wrote what these lake tables hold: no merge finds another's hand."""
        for table in tables:
            main = f"select snapshot_id from lake.{self.name}.public.`{table}`.refs where name = 'main'"
            ((snapshot,),) = self.spark.sql(main).collect()
            self.ledger.execute(
                "update penstock.table set snapshot_id = %s where pipeline = %s and name = %s",
                snapshot,
                self.name,
                table,
            )

    def resync(self, *tables: str) -> bool:
        """Copy these tables again, or whatever waits, as a person asks; let the copies take their places."""
        return rebuild.switch(self.ctx, rebuild.resync(self.ctx, list(tables) or None, self.submit), self.submit)

    def wake(self, *, woken: bool = True) -> bool:
        """Do what the DAG does that capture wakes: read what waits for it, and let it take its place."""
        return rebuild.switch(self.ctx, rebuild.resync(self.ctx, None, self.submit, woken=woken), self.submit)

    @property
    def tables(self) -> list[TableRecord]:
        """Return the pipeline's tables as the ledger has them now."""
        return self.ctx.ledger.tables.all(self.name)

    def table(self, name: str) -> TableRecord:
        """Return one of them by its name."""
        (found,) = (table for table in self.tables if table.name == name)
        return found

    def states(self) -> dict[str, tuple[str, str | None]]:
        """Return the state of each table, and the slug of what it is paused by."""
        return {table.name: (table.state, table.paused_slug) for table in self.tables}

    def unlike(self) -> list[str]:
        """Return how the lake differs from the source: nothing, where the two are equal."""
        return [line for table in compare(self.ctx).tables if not table.equal for line in table.lines()]

    def paused(self) -> dict[str, str]:
        """Return why each table that is paused is."""
        return {table.name: table.paused_reason or "" for table in self.tables if table.state == "paused"}

    def copies(self) -> set[tuple[str, int]]:
        """Return the copies that were made of tables, by their id and the table's oid."""
        return {(copy.copy_id or "", copy.oid) for copy in self.ctx.ledger.loads.copies(self.name)}

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement, or several, on the source."""
        rows: list[tuple[Any, ...]] = self.source.execute(statement)
        return rows

    def each(self, tables: Iterable[str], statements: str) -> None:
        """Run statements on the source for each of these tables, which they call {t}."""
        for table in tables:
            self.sql(statements.format(t=table))

    def lake_rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        """Return the rows of a lake table as Spark reads them now."""
        self.spark.sql(f"refresh table lake.{self.name}.public.`{table}`")
        return [
            tuple(row) for row in self.spark.sql(f"select {columns} from lake.{self.name}.public.`{table}`").collect()
        ]

    def data_files(self, table: str) -> set[str]:
        """Return the data files and deletion vectors of a lake table."""
        self.lake_rows(table, "1")  # as Spark reads it now
        files = self.spark.sql(f"select file_path from lake.{self.name}.public.`{table}`.files").collect()
        return {path for (path,) in files}

    def wrong(self, copied: set[tuple[str, int]] | None = None) -> list[str]:
        """Return what is not as it should be.

        That are tables that wait, that differ from the source, of which changes missed their rows, or that were copied beyond `copied`.
        """
        records = [table for table in self.tables if table.state != "dropped"]
        return [
            *(f"{each.name} is {each.state}: {each.paused_reason}" for each in records if each.state != "ready"),
            *(line for table in compare(self.ctx, records).tables if not table.equal for line in table.lines()),
            *(
                f"{name}: {count} changes did not meet the row that they speak of"
                for name, count in self.missed().items()
            ),
            *(f"table {oid} was copied" for _, oid in (self.copies() - copied if copied is not None else ())),
        ]

    def missed(self) -> dict[str, int]:
        """Return the rows that changes missed, or met where there should be none, by table."""
        found = self.ledger.execute(
            "select name, update_missing + delete_missing + insert_existing from penstock.table where pipeline = %s",
            self.name,
        )
        return {name: count for name, count in found if count}

    def file(self, folder: Path) -> Path:
        """Write the pipeline's file, with its settings of this moment."""
        settings = {"name": self.name, "tables": {"include": ["public.*"]}, "landing": {"uri": str(self.landing)}}
        file = folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump({**settings, **self.settings}))
        return file

    def connections(self) -> dict[str, str]:
        """Return the pipeline's connections as a shell has them."""
        places = {"SOURCE": self.source, "LEDGER": self.ledger}
        if self.lake is not None:
            places["CATALOG"] = self.lake.database
        return {f"AIRFLOW_CONN_PENSTOCK_{name}": airflow_connection(place) for name, place in places.items()}

    def to_json(self) -> str:
        """Return the coordinates with which another process can open the same pipeline, without Spark."""

        def place(database: Database) -> dict[str, Any]:
            server = database.server
            return {"port": server.port, "password": server.password, "name": database.name}

        return json.dumps(
            {
                "source": place(self.source),
                "ledger": place(self.ledger),
                "catalog": place(self.lake.database) if self.lake else None,
                "landing": str(self.landing),
                "name": self.name,
                "settings": self.settings,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> PipelineEnv:
        """Open the pipeline that another process has made."""
        known = json.loads(text)
        return cls(
            source=_Place(**known["source"]),
            ledger=_Place(**known["ledger"]),
            catalog=_Place(**known["catalog"]) if known["catalog"] else None,
            landing=Path(known["landing"]),
            name=known["name"],
            settings=known["settings"],
        )


@dataclass(frozen=True)
class _Place:
    """A database that another process started."""

    port: int
    password: str
    name: str

    @property
    def server(self) -> _Place:
        return self


def wait_for(conn: psycopg.Connection[Any], statement: str) -> None:
    """Return when a query returns true."""
    wait_until(lambda: (conn.execute(statement.encode()).fetchone() or (False,))[0], statement)
