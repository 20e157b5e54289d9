"""`penstock start` brings a pipeline's DAGs to life by Airflow's own command line, and says so when that does not answer."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.cli.options import Status
from penstock.config.dags import STARTED, WHEN
from stack.servers.postgres import Database
from tests.pipeline_env import ROOT, airflow_connection

FILE = "name: shop\ntables: {include: [public.*]}\n"


@pytest.fixture
def shop(database16: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline file, a ledger that is empty, and an Airflow of the test's own that has read no file yet."""
    monkeypatch.setenv("PENSTOCK_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("PENSTOCK_HOME", str(ROOT))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(ROOT / "dags"))
    monkeypatch.setenv("AIRFLOW__CORE__PLUGINS_FOLDER", str(ROOT / "plugins"))
    monkeypatch.delenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", raising=False)
    for name in ("LEDGER", "SOURCE"):
        monkeypatch.setenv(f"AIRFLOW_CONN_PENSTOCK_{name}", airflow_connection(database16))
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.yaml").write_text(FILE)
    return tmp_path


def test_a_shell_without_airflow_is_told_what_to_do(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(shop))
    absent = CliRunner().invoke(app, ["start", "shop"], env={"COLUMNS": "300"})
    (shop / "airflow").write_text("#!/bin/sh\necho postgresql://user:secret@host >&2\nexit 3\n")
    (shop / "airflow").chmod(0o755)

    failing = CliRunner().invoke(app, ["start", "shop"], env={"COLUMNS": "300"})

    assert {absent.exit_code, failing.exit_code} == {Status.REFUSED}
    assert "expected Airflow's command line on the PATH, got none" in absent.stderr
    assert "to reach Airflow's metadata, got exit status 3; run `airflow db check`" in failing.stderr
    assert "secret" not in failing.output
    assert "Next: penstock runbook airflow-unreachable shop" in failing.stderr


def test_each_step_is_a_line(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = json.dumps([{"dag_id": f"shop.{verb}", "is_paused": "True"} for verb in WHEN])
    (shop / "airflow").write_text(f"#!/bin/sh\ncase $2 in list) echo '{listed}';; list-runs) echo '[]';; esac\n")
    (shop / "airflow").chmod(0o755)
    monkeypatch.setenv("PATH", f"{shop}{os.pathsep}{os.environ['PATH']}")

    done = CliRunner().invoke(app, ["start", "shop"], env={"COLUMNS": "300"})

    assert done.exit_code == Status.DONE, done.stderr
    assert [line.removeprefix("shop: ").partition(" ")[0] for line in done.stderr.splitlines()] == [
        "asks",
        "Airflow",
        "triggers",
        "unpauses",
    ]
    assert "shop.bootstrap is triggered" in done.stdout


@pytest.mark.slow
def test_what_belongs_together_is_unpaused_once_airflow_has_read_the_file(shop: Path) -> None:
    def airflow(*words: str) -> str:
        return subprocess.run(["airflow", *words], capture_output=True, text=True, check=True).stdout

    airflow("db", "migrate")
    with subprocess.Popen(
        ["penstock", "start", "shop", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": f"{ROOT / 'bin'}{os.pathsep}{os.environ['PATH']}"},
    ) as started:
        assert started.stderr is not None
        waits = [started.stderr.readline() for _ in range(2)][1]
        airflow("dags", "reserialize")
        said, errors = started.communicate(timeout=500)
    again = CliRunner().invoke(app, ["start", "shop", "--json"])
    shown = CliRunner().invoke(app, ["status", "shop", "--json"])
    dags = airflow("dags", "list", "--columns", "dag_id,is_paused", "--output", "plain").splitlines()
    runs = airflow("dags", "list-runs", "shop.bootstrap", "--output", "plain")

    assert "waits for Airflow to have read the pipeline's file" in waits
    assert started.returncode == Status.DONE
    assert "triggers shop.bootstrap" in errors
    there = {line.split()[0].removeprefix("shop."): line.split()[1] for line in dags if line.startswith("shop.")}
    live = [verb for verb in STARTED if there.get(verb) == "False"]
    assert set(WHEN) - set(there) <= {"changelog"}
    assert live == [verb for verb in STARTED if verb in there]
    assert [verb for verb in there if verb not in STARTED and there[verb] == "False"] == []
    assert json.loads(said) == {"pipeline": "shop", "triggered": True, "unpaused": live}
    assert json.loads(again.stdout) == {"pipeline": "shop", "triggered": False, "unpaused": []}
    assert runs.count("queued") == 1
    assert (shown.exit_code, json.loads(shown.stdout)) == (
        Status.DONE,
        {"pipeline": "shop", "state": "starting", "bootstrap": "queued"},
    )
