"""The whole local stack, Airflow included: a DAG runs Spark on it, it survives kills, and it ends without a rest."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from stack import lifecycle, ports
from stack.airflow.rest_api import AirflowApi
from stack.errors import StackError
from stack.paths import Project
from stack.progress import Progress
from stack.stack import Stack
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HERE = Project.here()

DAG = """
import os
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import dag, task

@dag(schedule=None)
def trial():
    @task
    def fail_if_asked(params=None):
        if params.get("fail"):
            raise ValueError("asked to fail")

    @task(pool="penstock_source")
    def source():
        from airflow.providers.postgres.hooks.postgres import PostgresHook
        assert PostgresHook("penstock_source").get_first("select current_user") == ("penstock_capture",)
        assert PostgresHook("penstock_reader").get_first("select current_user") == ("penstock_reader",)
        ledger = PostgresHook("penstock_ledger").get_first("select current_database()")
        assert ledger == ("penstock",), ledger

    @task(pool="penstock_source")
    def wait_if_asked(params=None):
        import subprocess
        if params.get("wait"):
            subprocess.run(["sleep", "600"], check=True)

    spark = SparkSubmitOperator(
        task_id="spark",
        conn_id="penstock_spark",
        pool="penstock_spark",
        application="{application}",
        py_files=os.environ["PENSTOCK_ZIP"],
    )
    fail_if_asked() >> source() >> wait_if_asked() >> spark

trial()
"""
APPLICATION = """
import penstock.lsn
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("sum is", spark.range(10).selectExpr("sum(id)").first()[0], "from", penstock.__file__)
"""


def quiet() -> Progress:
    return Progress(Console(quiet=True))


@pytest.fixture(scope="module")
def project(servers_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with one DAG of its own, and our plugins."""
    lifecycle.set_up(HERE, quiet())
    root = tmp_path_factory.mktemp("project")
    for shared in ("plugins", "include", "bin"):
        (root / shared).symlink_to(HERE.root / shared)
    (root / "dags").mkdir()
    (root / "application.py").write_text(APPLICATION)
    (root / "dags" / "trial.py").write_text(DAG.replace("{application}", str(root / "application.py")))
    project = Project(root, servers_home / "whole")
    project.local.mkdir()
    project.write_ports({name: ports.choose() for name in ("source", "control", "airflow")})
    (project.local / "jars").symlink_to(HERE.jars)
    yield project
    lifecycle.clean(project, quiet())


@pytest.fixture
def stack(project: Project) -> Stack:
    """The stack, brought up from whatever the test before left behind."""
    return lifecycle.up(project, quiet())


@pytest.fixture
def api(stack: Stack) -> AirflowApi:
    stack.airflow.api.wait_for_dag("trial")
    stack.airflow.api.unpause("trial")
    return stack.airflow.api


def listening(pids: list[int]) -> set[str]:
    """Return the addresses on which these processes listen."""
    sockets = {
        str(entry.readlink())
        for pid in pids
        for entry in Path(f"/proc/{pid}/fd").iterdir()
        if entry.is_symlink() and os.path.lexists(entry)
    }
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def test_a_dag_reads_both_servers_and_runs_spark_with_the_library(api: AirflowApi):
    run = api.trigger("trial")

    api.wait_for_run("trial", run, say=lambda tasks: None)

    log = api.log("trial", run, "spark")
    assert "sum is 45" in log
    assert "penstock.zip" in log
    assert api.import_errors() == []


def test_a_failed_run_is_reported_with_the_failed_tasks_own_words(api: AirflowApi):
    run = api.trigger("trial", {"fail": True})

    with pytest.raises(StackError, match="task fail_if_asked failed") as caught:
        api.wait_for_run("trial", run)

    assert "asked to fail" in str(caught.value)


def test_secrets_are_not_in_airflows_logs(stack: Stack):
    secrets = [value.encode() for value in vars(stack.secrets).values()]
    logs = [*stack.project.logs.rglob("*.log"), *(stack.project.airflow_home / "logs").rglob("*.log")]

    assert len(logs) > 5
    assert [log for log in logs if any(secret in log.read_bytes() for secret in secrets)] == []


def test_airflow_listens_on_loopback_only(stack: Stack):
    addresses = listening(stack.airflow.session.members())

    assert addresses == {f"0100007F:{stack.ports['airflow']:04X}"}


def test_the_ui_refuses_whoever_does_not_know_the_generated_login(stack: Stack):
    stranger = httpx.post(f"{stack.airflow.url}/auth/token", json={"username": "admin", "password": "admin"})

    assert stranger.status_code == 401


def test_a_second_up_leaves_airflow_alone(stack: Stack):
    members = stack.airflow.session.members()

    again = lifecycle.up(stack.project, quiet())

    assert set(members) <= set(again.airflow.session.members())


def test_an_airflow_that_lost_a_component_gets_it_back_by_itself_or_by_up(stack: Stack):
    """By itself if it was well before, for a minute at least: its database may have been away."""

    def dag_processors() -> set[int]:
        found = set()
        for pid in stack.airflow.session.members():
            with suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                found |= {pid} if b"dag-processor" in line and b"sh\0" not in line else set()
        return found

    before = dag_processors()
    for each in before:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    wait_until(lambda: stack.airflow.dead_components() == ["dag-processor"] or dag_processors() - before)

    again = lifecycle.up(stack.project, quiet())

    assert again.airflow.dead_components() == []
    assert again.airflow.api.unhealthy() == []


def test_down_ends_running_tasks_and_their_children_too(api: AirflowApi, stack: Stack):
    run = api.trigger("trial", {"wait": True})
    before = set(stack.airflow.session.members())
    wait_until(
        lambda: any(
            task["task_id"] == "wait_if_asked" and task["state"] == "running"
            for task in api.task_instances("trial", run)
        )
    )
    wait_until(
        lambda: any(
            b"sleep\000600" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in stack.airflow.session.members()
        )
    )
    everything = before | set(stack.airflow.session.members())

    lifecycle.down(stack.project, quiet())

    assert [pid for pid in everything if Path(f"/proc/{pid}/cwd").exists()] == []
    assert not stack.source.is_running()
    assert not stack.control.is_running()


def test_up_after_a_kill_of_everything_runs_dags_again(stack: Stack, project: Project):
    for pid in [*stack.airflow.session.members(), stack.source.pid(), stack.control.pid()]:
        os.kill(pid, signal.SIGKILL)

    api = lifecycle.up(project, quiet()).airflow.api
    run = api.trigger("trial")
    api.wait_for_run("trial", run)

    assert api.run("trial", run)["state"] == "success"
    assert stack.source.is_running()
