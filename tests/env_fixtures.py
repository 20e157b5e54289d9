"""Fixtures of scenarios and attacks: a database, a ledger and a namespace of the lake of the test's own."""

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from penstock import package
from penstock.cli import context
from penstock.cli.app import app
from stack.servers.postgres import Database, Server
from tests.conftest import LakeCatalog
from tests.pipeline_env import ROOT, PipelineEnv, connection, own_names

Command = Callable[..., Result]

_numbers = itertools.count(1)


@pytest.fixture
def env(
    database: Database, postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path: Path
) -> Iterator[PipelineEnv]:
    """A pipeline on each PostgreSQL version in turn."""
    yield from env_on(database, postgres16, lake, spark, tmp_path)


@pytest.fixture
def env16(
    database16: Database, postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path: Path
) -> Iterator[PipelineEnv]:
    """A pipeline on the embedded server only."""
    yield from env_on(database16, postgres16, lake, spark, tmp_path)


@pytest.fixture
def landing_env(database: Database, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[PipelineEnv]:
    """A pipeline on each PostgreSQL version in turn without Spark, for scenarios that end in the landing zone."""
    yield from env_on(database, postgres16, lake, None, tmp_path)


@pytest.fixture
def env15(
    postgres15: Server, postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path: Path
) -> Iterator[PipelineEnv]:
    """A pipeline on PostgreSQL 15 only, for scenarios whose other version is tested all the time."""
    with postgres15.temporary_database(f"only15_{next(_numbers)}") as source:
        yield from env_on(source, postgres16, lake, spark, tmp_path)


@pytest.fixture
def landing_env16(database16: Database, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[PipelineEnv]:
    """A pipeline on the embedded server without Spark, for scenarios that end in the landing zone."""
    yield from env_on(database16, postgres16, lake, None, tmp_path)


@pytest.fixture
def landing_env18(postgres18: Server, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[PipelineEnv]:
    """A pipeline on PostgreSQL 18 without Spark, for what only that version has; slow."""
    with postgres18.temporary_database(f"only18_{next(_numbers)}") as source:
        yield from env_on(source, postgres16, lake, None, tmp_path)


def env_on(
    source: Database, control: Server, lake: LakeCatalog, spark: SparkSession | None, folder: Path
) -> Iterator[PipelineEnv]:
    """Lend a pipeline on this source, with a ledger of its own on the control server."""
    number = next(_numbers)
    with control.temporary_database(f"ledger{number}") as ledger:
        made = PipelineEnv(source, ledger, folder / "landing", f"w{number}", lake=lake, spark=spark)
        # a slot of this name may stay behind in no other test: names are unique in the whole cluster
        made.settings = own_names(source)
        yield made


@pytest.fixture
def penstock(env16: PipelineEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A function that runs `penstock` on the pipeline, with its settings of that moment; Spark runs in the tests' own session."""
    places: dict[str, Any] = {"source": env16.source, "ledger": env16.ledger}
    places["catalog"] = env16.lake.database if env16.lake else None
    for name, place in places.items():
        known = connection(place, name)
        words = {"host": known.host, "port": known.port, "login": known.user, "password": known.password}
        value = json.dumps({"conn_type": "postgres", "schema": known.database, **words})
        monkeypatch.setenv(f"AIRFLOW_CONN_PENSTOCK_{name.upper()}", value)
    monkeypatch.setattr(context, "submitter", lambda ctx: env16.submit)
    monkeypatch.setenv("PENSTOCK_PIPELINES", str(tmp_path))
    chosen = {"name": env16.name, "tables": {"include": ["public.*"]}, "landing": {"uri": str(env16.landing)}}
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump({**chosen, **env16.settings}))

    def run(verb: str, *options: str, pipeline: str | None = str(file)) -> Result:
        named = [] if pipeline is None else [pipeline]
        return CliRunner().invoke(app, [verb, *named, *options], env={"COLUMNS": "400"})

    return run


@pytest.fixture
def shell_with_spark(java_home: Path, spark_conf_dir: Path, tmp_path: Path) -> dict[str, str]:
    """What a person's shell needs besides to submit to a Spark of its own."""
    library = tmp_path / "penstock.zip"
    package.build(ROOT, library)
    return {
        "JAVA_HOME": str(java_home),
        "SPARK_CONF_DIR": str(spark_conf_dir),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PENSTOCK_ZIP": str(library),
        "AIRFLOW_CONN_PENSTOCK_SPARK": '{"conn_type": "spark", "host": "local[2]"}',
    }
