"""Thirty bad pipeline files next to a good one: the good one's DAGs are all there, each bad one is named with its line.

Airflow is the oracle: its own DagBag reads the DAG files as they are deployed, and its own tables say what is scheduled.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.config import load_pipeline
from penstock.errors import ConfigError
from penstock.pipeline_files import find_pipeline, read_folder
from penstock.texts import PRESETS
from tests.dags.test_dags import ROOT, VERBS

LEAST = 'name: {name}\ntables: {{include: ["public.*"]}}\n'
BOMB = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}' if n else 'x'] * 9)}]\n" for n in range(12))

# name -> (what follows the least file, the line that must be named, words of the refusal)
BAD: dict[str, tuple[str, int, str]] = {
    "unknown_key": ("captur: {}\n", 3, "did you mean 'capture'"),
    "words_as_cron": ("capture: {schedule: every minute}\n", 3, "five fields"),
    "four_fields": ("merge:\n  schedule: '* * * *'\n", 4, "five fields"),
    "six_fields": ("merge: {schedule: '* * * * * *'}\n", 3, "five fields"),
    "minute_61": ("maintain: {schedule: '61 * * * *'}\n", 3, "a time that exists"),
    "no_such_day": ("verify: {schedule: '0 0 30 2 *'}\n", 3, "a time that exists"),
    "unknown_preset": ("changelog: {schedule: '@fortnightly'}\n", 3, "five fields"),
    "continuous": ("changelog: {schedule: '@continuous'}\n", 3, "five fields"),
    "random_cron": ("health: {schedule: 'R * * * *'}\n", 3, "five fields"),
    "schedule_is_a_list": ("capture: {schedule: ['* * * * *']}\n", 3, "valid string"),
    "span_of_ages": ("capture: {time_budget: 99999999999d}\n", 3, "less than or equal"),
    "timeout_of_years": ("capture: {statement_timeout: 300d}\n", 3, "less than or equal"),
    "runs_beyond_an_integer": ("changelog: {max_active_runs: 9999999999}\n", 3, "less than or equal"),
    "yes_for_a_number": ("capture: {max_wal_bytes: yes}\n", 3, "got a boolean"),
    "memory_of_words": ("spark: {driver_memory: lots}\n", 3, "such as 2g"),
    "memory_with_b": ("spark: {driver_memory: 2gb}\n", 3, "such as 2g"),
    "memory_too_small": ("spark: {driver_memory: 64m}\n", 3, "512m at least"),
    "conf_is_no_text": ("spark: {conf: {spark.sql.ansi.enabled: true}}\n", 3, "valid string"),
    "conf_of_others": ("spark: {conf: {hadoop.tmp.dir: /tmp}}\n", 3, "all that spark-submit passes on"),
    "conf_size": ("spark: {conf: {spark.executor.memory: '2 GiB'}}\n", 3, "expected a size"),
    "connection_with_blanks": ("source: {connection: 'my source'}\n", 3, "match pattern"),
    "relative_landing": ("landing: {uri: landing}\n", 3, "absolute path"),
    "empty_landing": ("landing: {uri: ''}\n", 3, "absolute path"),
    "empty_variable": ("landing:\n  uri: '${PENSTOCK_EMPTY}'\n", 4, "PENSTOCK_EMPTY is empty"),
    "missing_variable": ("lake: {properties: {a: 'x${PENSTOCK_NOWHERE}'}}\n", 3, "PENSTOCK_NOWHERE is not set"),
    "half_a_variable": ("landing: {uri: '${PENSTOCK_HOME:-/tmp}/x'}\n", 3, "a variable as ${NAME}"),
    "alias_bomb": (BOMB, 4, "an alias"),
    "merge_key": ("capture: {<<: {time_budget: 5m}}\n", 3, "a merge"),
    "key_twice_in_a_list": (
        "health: {drop: {foreign: [{name: a, name: b, inactive: 1d, retained: 1GiB}]}}\n",
        3,
        "every key once",
    ),
    "impossible_date": ("version: 2026-13-45\n", 3, "does not exist"),
    "endless_levels": (f"lake: {'[' * 5000}\n", 3, "at most 20 levels"),
    "two_documents": ("---\nname: other\n", 3, "another document"),
    "control_character": ('source: {skip_origins: ["a\\0b"]}\n', 3, "no program can store"),
    "script_as_address": ("health: {runbooks: 'javascript:alert(1)'}\n", 3, "such as https://"),
    "template_without_table": ("lake: {target: '{namespace}'}\n", 1, "it must hold {table}"),
    "property_is_no_number": (
        "lake: {properties: {write.target-file-size-bytes: big}}\n",
        3,
        "whole number",
    ),
    "property_without_vectors": ('lake: {properties: {format-version: "2"}}\n', 3, "which has deletion vectors"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One good file, and every bad one."""
    monkeypatch.setenv("PENSTOCK_PIPELINES", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    monkeypatch.setenv("PENSTOCK_EMPTY", "")
    (tmp_path / "good.yaml").write_text(LEAST.format(name="good"))
    for name, (added, *_) in BAD.items():
        (tmp_path / f"{name}.yaml").write_text(LEAST.format(name=name) + added)
    (tmp_path / "again.yaml").write_text(LEAST.format(name="good"))
    (tmp_path / "ending.yml").write_text(LEAST.format(name="ending"))
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "large.yaml").write_text("# " + "x" * (300 << 10))
    os.mkfifo(tmp_path / "pipe.yaml")
    return tmp_path


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_refused_when_the_file_is_loaded_with_file_line_and_what_to_write(
    folder: Path, name: str
) -> None:
    _, line, words = BAD[name]
    path = folder / f"{name}.yaml"

    with pytest.raises(ConfigError, match="config-invalid") as caught:
        load_pipeline(path, {"PENSTOCK_HOME": "/srv", "PENSTOCK_EMPTY": ""})
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert words in caught.value.message


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

    monkeypatch.setattr("penstock.texts._FIELD", re.compile(".*"))
    monkeypatch.setattr("penstock.texts.croniter", lambda *_: Knowing())
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
    assert ["a_copy.yaml:1: a pipeline named good is defined twice" in str(each) for each in found.problems] == [True]
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
    assert "expected one of the pipelines" in said
    assert "connection-missing" in " ".join(shell("status", "good").stderr.split())
