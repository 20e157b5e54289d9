"""A deployment as Airflow sees one: a pipeline file, connections, and a ledger that is a database of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.servers.postgres import Database
from tests.conftest import LakeCatalog
from tests.dags.test_dags import ROOT
from tests.env_fixtures import shell_with_spark
from tests.pipeline_env import PipelineEnv

__all__ = ["shell_with_spark"]

PIPELINE = """
name: {name}
source: {{slot: {slot}, publication: {slot}}}
tables: {{include: ["public.*"]}}
landing: {{uri: "{landing}"}}
changelog: {{slack: 0}}
"""


SMALL = """
name: {name}
tables: {{include: ["public.*"]}}
"""


@pytest.fixture
def pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the files of two pipelines, shop and crm, which Airflow reads."""
    monkeypatch.setenv("PENSTOCK_PIPELINES", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_HOME", str(ROOT))
    (tmp_path / "shop.yaml").write_text(SMALL.format(name="shop"))
    (tmp_path / "crm.yaml").write_text(SMALL.format(name="crm"))
    return tmp_path


@pytest.fixture
def deployed(
    database16: Database,
    lake: LakeCatalog,
    airflow_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[PipelineEnv]:
    """A pipeline file and Airflow connections, as a deployment has them; the ledger is a database of its own."""
    name = f"dag_{database16.name}"
    with database16.server.temporary_database(f"ledger_{database16.name}") as ledger:
        env = PipelineEnv(database16, ledger, tmp_path / "landing", name, lake)
        env.settings = {"source": {"slot": name, "publication": name}}
        (tmp_path / "pipeline.yaml").write_text(PIPELINE.format(name=name, slot=name, landing=env.landing))
        monkeypatch.setenv("PENSTOCK_PIPELINES", str(tmp_path))
        monkeypatch.setenv("PENSTOCK_HOME", str(ROOT))
        for variable, value in env.connections().items():
            monkeypatch.setenv(variable, value)
        yield env


@pytest.fixture
def with_spark(deployed: PipelineEnv, shell_with_spark: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> PipelineEnv:
    """The deployment with an Airflow that submits to a Spark of its own."""
    for name, value in shell_with_spark.items():
        monkeypatch.setenv(name, value)
    return deployed
