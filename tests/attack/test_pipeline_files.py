"""Many bad pipeline files next to a good one: the good one's DAGs are all there, each bad one is named with its line.

Airflow is the oracle: its own DagBag reads the DAG files as they are deployed, and its own tables say what is scheduled.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.config.files import find_pipeline, read_folder
from penstock.config.model import load_pipeline
from penstock.config.validators import PRESETS
from penstock.config.yaml_document import InvalidFileError, Problem
from tests.config.bad_pipeline_files import BAD, ENVIRONMENT, LEAST
from tests.dags.test_dags import ROOT, VERBS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One good file, and every bad one."""
    monkeypatch.setenv("PENSTOCK_PIPELINES", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    monkeypatch.setenv("PENSTOCK_EMPTY", "")
    (tmp_path / "good.yaml").write_text(LEAST.format(name="good"))
    for name, bad in BAD.items():
        (tmp_path / f"{name}.yaml").write_text(LEAST.format(name=name) + bad.text)
    (tmp_path / "again.yaml").write_text(LEAST.format(name="good"))
    (tmp_path / "ending.yml").write_text(LEAST.format(name="ending"))
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "large.yaml").write_text("# " + "x" * (300 << 10))
    os.mkfifo(tmp_path / "pipe.yaml")
    return tmp_path


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_refused_with_file_line_key_and_what_to_write(folder: Path, name: str) -> None:
    bad = BAD[name]
    path = folder / f"{name}.yaml"

    with pytest.raises(InvalidFileError, match="config-invalid") as caught:
        load_pipeline(path, ENVIRONMENT)
    assert caught.value.problems == (Problem(path, bad.line, bad.key, bad.message),)
    assert caught.value.message == f"{path}:{bad.line}: {f'{bad.key}: ' if bad.key else ''}{bad.message}"
    assert "hunter2" not in caught.value.message


def test_the_table_of_bad_files_is_long() -> None:
    assert len(BAD) >= 60


@pytest.mark.slow
def test_airflow_has_every_dag_of_the_good_file_and_names_each_bad_one(folder: Path, airflow_home: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db  # noqa: PLC0415  # after the throw-away home is set
    from airflow.models.dag import DagModel  # noqa: PLC0415
    from airflow.models.dagbundle import DagBundleModel  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    bag = DagBag(ROOT / "dags", bundle_path=ROOT / "dags", bundle_name="attack")

    assert set(bag.dags) == {f"good.{verb}" for verb in VERBS}
    (shown,) = bag.import_errors.values()
    assert [*bag.import_errors] == ["pipeline_files.py"]
    left_out = {path.name for path in folder.iterdir()} - {"good.yaml"}
    assert {name for name in left_out if f"{folder}/{name}" in shown} == left_out

    with create_session() as session:  # what the scheduler goes by
        session.merge(DagBundleModel(name="attack"))
        session.flush()
        sync_bag_to_db(bag, "attack", None, session=session)
        kept = session.query(DagModel).filter(DagModel.bundle_name == "attack").all()
        assert {model.dag_id for model in kept if not model.has_import_errors} == set(bag.dags)
        session.rollback()


def test_a_dag_that_airflow_refuses_takes_no_other_away_and_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path
) -> None:
    """Let Airflow itself refuse a value that we let pass: here a cron, of which our own check knows nothing."""
    from airflow.dag_processing.dagbag import DagBag  # noqa: PLC0415

    monkeypatch.setattr("penstock.config.validators._FIELD", re.compile(".*"))
    monkeypatch.setattr("penstock.config.validators.croniter", lambda *_: Knowing())
    for path in folder.iterdir():
        if path.name != "good.yaml":
            path.unlink()
    (folder / "odd.yaml").write_text(LEAST.format(name="odd") + "verify: {schedule: 'H 25 * * *'}\n")

    bag = DagBag(ROOT / "dags")

    assert {each for each in bag.dags if each.startswith("good.")} == {f"good.{verb}" for verb in VERBS}
    assert {each for each in bag.dags if each.startswith("odd.")} == {f"odd.{verb}" for verb in VERBS} - {"odd.verify"}
    (shown,) = bag.import_errors.values()
    assert f"{folder}/odd.yaml:1: Airflow takes no DAG odd.verify from this file" in shown


class Knowing:
    """Take every cron."""

    def get_next(self) -> None:
        """Say nothing against it."""


CRONS = ["*/5 * * * *", "0 3 * * 1-5", "30 2 L * *", "0 0 * * sun#2", "15,45 8-18/2 * jan-mar mon", "0 0 1 */3 ?"]


@pytest.mark.parametrize("cron", [*CRONS, *PRESETS])
def test_a_cron_that_we_take_airflow_takes_too(tmp_path: Path, cron: str) -> None:
    from airflow.sdk import DAG, CronDataIntervalTimetable  # noqa: PLC0415
    from airflow.serialization.serialized_objects import DagSerialization  # noqa: PLC0415

    (tmp_path / "one.yaml").write_text(LEAST.format(name="one") + f"merge: {{schedule: '{cron}'}}\n")
    schedule = load_pipeline(tmp_path / "one.yaml", {"PENSTOCK_HOME": "/srv"}).merge.schedule
    assert schedule is not None

    for timetable in (schedule, CronDataIntervalTimetable(schedule, timezone="UTC")):
        dag = DAG("one.merge", schedule=timetable, auto_register=False)
        dag.validate()
        DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable.validate()


def test_a_literal_dollar_brace_is_written_with_two_dollars(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("name: one\ntables: {include: ['public.\"$${env:HOME}\"']}\n")

    pipeline = load_pipeline(tmp_path / "one.yaml", {"PENSTOCK_HOME": "/srv"})
    assert pipeline.tables.include == ['public."${env:HOME}"']


def test_the_file_that_bears_the_name_has_it_and_a_copy_of_it_takes_nothing_away(tmp_path: Path) -> None:
    (tmp_path / "a_copy.yaml").write_text(LEAST.format(name="good") + "capture: {time_budget: 1m}\n")
    (tmp_path / "good.yaml").write_text(LEAST.format(name="good"))

    found = read_folder(tmp_path, {"PENSTOCK_HOME": "/srv"})
    assert found.files["good"] == tmp_path / "good.yaml"
    assert ["a_copy.yaml:1: name: expected another name, got good twice" in str(each) for each in found.problems] == [
        True
    ]
    assert find_pipeline("good", tmp_path, {"PENSTOCK_HOME": "/srv"}).capture.time_budget == 300


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    (problem,) = read_folder(tmp_path / "typo", {}).problems

    assert "set PENSTOCK_PIPELINES" in problem.message


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(folder: Path) -> Run:
    """Run the command line in a process of its own, which has no connection at all."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_CONN_")}
        return subprocess.run(
            [sys.executable, "-m", "penstock.cli", *arguments],
            env=environment | {"PYTHONPATH": str(ROOT / "plugins")},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


@pytest.mark.slow
def test_the_command_line_reads_only_the_file_that_it_was_asked_for(shell: Run) -> None:
    for wanted in ("good", "four_fields", "nothing"):
        said = " ".join(shell("status", wanted).stderr.split())
        named = {name for name in BAD if f"{name}.yaml:" in said.replace(" ", "")}
        assert named == ({wanted} & set(BAD)), said
    assert "expected a pipeline of" in said
    assert "connection-missing" in " ".join(shell("status", "good").stderr.split())
