"""Fixtures of scenarios and attacks: a database, a ledger and a namespace of the lake of the test's own."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from penstock import package
from penstock.cli import context
from penstock.cli.app import app
from penstock.flow.spark_job import Submit
from stack.servers.postgres import Database, Server
from tests.conftest import LakeCatalog
from tests.pipeline_env import ROOT, PipelineEnv, own_names, spark_variables

Command = Callable[..., Result]
RealSubmit = Callable[[Callable[[str], None]], Submit]

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Around:
    """What a pipeline of a test's own has around it: the server of ledger and lake, and Spark, which begins when it is used."""

    control: Server
    lake: LakeCatalog
    folder: Path
    spark: Callable[[], SparkSession]

    def env_on(self, source: Database) -> Iterator[PipelineEnv]:
        """Lend a pipeline on this source, with a ledger of its own on the control server."""
        number = next(_numbers)
        with self.control.temporary_database(f"ledger{number}") as ledger:
            made = PipelineEnv(
                source, ledger, self.folder / "landing", f"w{number}", lake=self.lake, session=self.spark
            )
            # a slot of this name may stay behind in no other test: names are unique in the whole cluster
            made.settings = own_names(source)
            yield made


@pytest.fixture
def around(request: pytest.FixtureRequest, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Around:
    if request.node.get_closest_marker("spark") is not None:
        request.getfixturevalue("spark")  # before the test watches what processes say
    return Around(postgres16, lake, tmp_path, lambda: request.getfixturevalue("spark"))


@pytest.fixture
def env(database: Database, around: Around) -> Iterator[PipelineEnv]:
    """A pipeline on each PostgreSQL version in turn."""
    yield from around.env_on(database)


@pytest.fixture
def env16(database16: Database, around: Around) -> Iterator[PipelineEnv]:
    """A pipeline on the embedded server only."""
    yield from around.env_on(database16)


@pytest.fixture
def env15(postgres15: Server, around: Around) -> Iterator[PipelineEnv]:
    """A pipeline on PostgreSQL 15 only, for scenarios whose other version is tested all the time."""
    with postgres15.temporary_database(f"only15_{next(_numbers)}") as source:
        yield from around.env_on(source)


@pytest.fixture
def env18(postgres18: Server, around: Around) -> Iterator[PipelineEnv]:
    """A pipeline on PostgreSQL 18, for what only that version has; slow."""
    with postgres18.temporary_database(f"only18_{next(_numbers)}") as source:
        yield from around.env_on(source)


@pytest.fixture
def penstock(env16: PipelineEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A function that runs `penstock` on the pipeline, with its settings of that moment; Spark runs in the tests' own session."""
    for name, value in env16.connections().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(context, "submitter", lambda ctx: env16.submit)
    monkeypatch.setenv("PENSTOCK_PIPELINES", str(tmp_path))
    file = env16.file(tmp_path)

    def run(verb: str, *options: str, pipeline: str | None = str(file)) -> Result:
        named = [] if pipeline is None else [pipeline]
        return CliRunner().invoke(app, [verb, *named, *options], env={"COLUMNS": "400"})

    return run


@pytest.fixture
def shell_with_spark(java_home: Path, spark_conf_dir: Path, tmp_path: Path) -> dict[str, str]:
    """What a person's shell needs besides to submit to a Spark of its own."""
    library = tmp_path / "penstock.zip"
    package.build(ROOT, library)
    spark = {"PENSTOCK_ZIP": str(library), "AIRFLOW_CONN_PENSTOCK_SPARK": '{"conn_type": "spark", "host": "local[2]"}'}
    return spark_variables(java_home, spark_conf_dir) | spark


@pytest.fixture
def real_submit(shell_with_spark: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> RealSubmit:
    """A function that returns a way to submit by `spark-submit` itself, and tells each line of the driver's to its caller."""
    for name, value in shell_with_spark.items():
        monkeypatch.setenv(name, value)
    library = Path(shell_with_spark["PENSTOCK_ZIP"])
    return lambda say: lambda job: context.spark_submit("local[2]", say)(replace(job, py_files=library))
