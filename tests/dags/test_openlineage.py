"""OpenLineage: what its provider sends to a file for a real capture and a real merge, and that nobody needs it."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from penstock.flow.capture.report import CaptureReport
from penstock.lsn import Lsn
from penstock.orchestration.lineage import Done, place
from stack.paths import Project
from tests.dags.test_dags import ROOT
from tests.pipeline_env import PipelineEnv

LOCK = Path(__file__).with_name("openlineage.txt")
RUN = """
import sys
from tests.dags.test_dags import load
for verb in sys.argv[2:]:
    assert load(verb)[f"{sys.argv[1]}.{verb}"].test().state == "success", verb
"""


@pytest.fixture(scope="session")
def provider() -> Path:
    """The provider and its client in a folder of their own: each task of a deployment that has it imports it."""
    folder = Project.here().local / "openlineage"
    made = folder / "made-of.txt"
    if not made.exists() or made.read_text() != LOCK.read_text():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--upgrade"]
        subprocess.run([*pip, "--require-hashes", "--target", str(folder), "-r", str(LOCK)], check=True)
        made.write_text(LOCK.read_text())
    return folder


def events(folder: Path, task: str) -> list[dict[str, Any]]:
    """What was sent when the task had ended."""
    found = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [each for each in found if each["eventType"] == "COMPLETE" and each["job"]["name"].endswith(f".{task}")]


def named(dataset: dict[str, Any]) -> tuple[str, str]:
    return dataset["namespace"], dataset["name"]


@pytest.mark.usefixtures("with_spark")
@pytest.mark.slow
def test_capture_and_merge_tell_openlineage_their_tables_positions_and_rows(
    deployed: PipelineEnv, provider: Path, tmp_path: Path
) -> None:
    assert deployed.lake is not None
    deployed.sql("create table t (id int primary key, name text); insert into t values (1, 'one'), (2, 'two')")
    path = [str(each) for each in (provider, ROOT / "plugins", ROOT, ROOT / "spark_apps")]
    environment = os.environ | {
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(tmp_path / "events.jsonl"), "append": True}
        ),
        "PYTHONPATH": os.pathsep.join(path),
    }

    def run(*verbs: str) -> None:
        subprocess.run([sys.executable, "-c", RUN, deployed.name, *verbs], env=environment, cwd=ROOT, check=True)

    run("bootstrap")
    (first,) = deployed.ctx.ledger.merges.cuts(deployed.name)
    deployed.sql("update t set name = 'changed' where id = 1; delete from t where id = 2; insert into t values (3, '')")
    run("capture", "merge")
    (cut, _) = deployed.ctx.ledger.merges.cuts(deployed.name)
    source = (f"postgres://127.0.0.1:{deployed.source.server.port}", f"{deployed.source.name}.public.t")
    landing = ("file", f"{deployed.landing}/{deployed.name}/windows")

    (capture,) = events(tmp_path, "windows")
    assert [named(each) for each in capture["inputs"]] == [source]
    assert [named(each) for each in capture["outputs"]] == [landing]
    facet = capture["run"]["facets"]["penstock_run"]
    assert (facet["fromLsn"], facet["uptoLsn"]) == (str(first.lsn), str(cut.lsn))
    assert facet["tables"] == {"public.t": {"changes": 3}}

    copied, merged = events(tmp_path, "publish")
    assert [named(each) for each in merged["inputs"]] == [source, landing]
    facet = merged["run"]["facets"]["penstock_run"]
    assert (facet["pipeline"], facet["fromLsn"], facet["uptoLsn"]) == (deployed.name, str(first.lsn), str(cut.lsn))
    assert facet["tables"] == {"public.t": {"inserts": 1, "updates": 1, "deletes": 1, "truncates": 0, "rows": 2}}
    (table,) = merged["outputs"]
    assert table["namespace"] == "file"
    assert Path(table["name"]).is_relative_to(deployed.lake.warehouse)
    assert (Path(table["name"]) / "metadata").is_dir()
    catalog = deployed.lake.database
    assert table["facets"]["symlinks"]["identifiers"] == [
        {
            "namespace": f"jdbc:postgresql://127.0.0.1:{catalog.server.port}/{catalog.name}",
            "name": f"lake.{deployed.name}.public.t",
            "type": "TABLE",
        }
    ]
    assert [field["name"] for field in table["facets"]["schema"]["fields"]] == ["id", "name"]
    columns = table["facets"]["columnLineage"]["fields"]
    assert {name: [(each["namespace"], each["name"], each["field"]) for each in field["inputFields"]]
            for name, field in columns.items()} == {name: [(*source, name)] for name in ("id", "name")}  # fmt: skip
    rows = [each["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] for each in (copied, merged)]
    assert rows == [2, 2], "the copy's rows, then one insert and one update"


def test_nothing_needs_the_provider_and_nothing_is_noted_without_it(pipelines: Path) -> None:
    from penstock.orchestration import airflow_internals  # noqa: PLC0415  # after the throw-away home is set
    from tests.dags.test_dags import load  # noqa: PLC0415

    assert find_spec("openlineage") is None
    assert load("merge")
    assert not airflow_internals.is_lineage_wanted()


def test_whatever_is_wrong_with_lineage_the_task_goes_on(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.orchestration import airflow_internals, lineage  # noqa: PLC0415  # after the throw-away home is set
    from penstock.orchestration.tasks import find_context  # noqa: PLC0415

    said: list[str] = []
    ctx = replace(find_context("shop"), progress=said.append)
    monkeypatch.setattr(airflow_internals, "is_lineage_wanted", lambda: True)

    lineage.captured(ctx, None, CaptureReport(()))  # there is no connection, and nothing that was captured

    (line,) = said
    assert line.startswith("what was done is not told to OpenLineage: ")


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("/var/lake/t-1/", ("file", "/var/lake/t-1")),
        ("file:///var/lake/t-1", ("file", "/var/lake/t-1")),
        ("s3a://bucket/lake/t-1", ("s3://bucket", "lake/t-1")),
        ("gs://bucket/lake/t-1", ("gs://bucket", "lake/t-1")),
    ],
)
def test_a_folder_is_named_as_openlineage_names_it(uri: str, named: tuple[str, str]) -> None:
    assert place(uri) == named


def test_several_cuts_of_one_task_are_told_as_one() -> None:
    first = Done(Lsn(1), Lsn(2), {}, {"public.t": {"inserts": 2, "rows": 7}}, {"public.t": 2, "public.u": 1})
    second = Done(Lsn(2), Lsn(3), {}, {"public.t": {"inserts": 1, "rows": 8}}, {"public.t": 2})

    both = first.and_then(second)

    assert (both.from_lsn, both.upto_lsn) == (Lsn(1), Lsn(3))
    assert both.counts == {"public.t": {"inserts": 3, "rows": 8}}
    assert both.written == {"public.t": 4, "public.u": 1}
