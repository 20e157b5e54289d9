"""The cluster next to the local stack: what it shares with it, what it pins, and where its secrets are not."""

import re
from pathlib import Path

import pytest
from pyiceberg.utils.config import Config
from rich.console import Console

from stack import lifecycle
from stack.__main__ import status
from stack.cluster import object_store
from stack.cluster.standalone import JARS, PREFERRED_PORTS, WORKERS
from stack.paths import Project
from stack.progress import Progress
from stack.spark import jars
from stack.spark.spark_conf import CATALOG
from stack.stack import Stack


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(Project.here().root, tmp_path / "local").clustered()


def test_it_has_a_folder_of_its_own_and_shares_only_what_is_slow_to_make(project: Project, tmp_path: Path):
    alone = Project(project.root, tmp_path / "local")

    assert (project.jars, project.compiled, project.jre) == (alone.jars, alone.compiled, alone.jre)
    for name in ("servers", "airflow_home", "spark_conf", "library", "secrets", "state"):
        assert getattr(project, name).is_relative_to(project.local)
        assert getattr(project, name) != getattr(alone, name)


def test_every_jar_is_pinned_once_and_by_its_checksum():
    for pinned in (object_store.SERVER, JARS):
        assert len({(jar.organisation, jar.name) for jar in pinned}) == len(pinned)
        assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in pinned)
    assert {"s3proxy", "iceberg-aws-bundle", "hadoop-aws"} <= {jar.name for jar in (*object_store.SERVER, *JARS)}


def test_the_parts_are_led_to_the_cluster_and_its_workers_are_given_no_secret(project: Project):
    stack = Stack.load(project)
    assert stack.cluster is not None
    given = stack.environment()
    secrets = list(vars(stack.secrets).values())

    assert f'"port": {PREFERRED_PORTS["spark-master"]}' in given["AIRFLOW_CONN_PENSTOCK_SPARK"]
    assert given["PENSTOCK_STORE"] == stack.cluster.store.address
    assert given["AWS_SECRET_ACCESS_KEY"] == stack.secrets.store
    for open_to_all in (stack.tools(), stack.cluster.settings()):
        assert not [name for name, value in open_to_all.items() if any(secret in value for secret in secrets)]
    assert stack.secrets.store not in repr(stack.cluster.store)


def test_pyiceberg_finds_the_store_in_the_environment(project: Project, monkeypatch: pytest.MonkeyPatch):
    store = object_store.ObjectStore("http://127.0.0.1:9878", "somebody", "only-for-tests")
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)

    found = Config().get_catalog_config(CATALOG)

    assert found == {"s3.endpoint": "http://127.0.0.1:9878", "s3.region": object_store.REGION}


def test_what_spark_runs_on_is_on_the_class_path_of_drivers_and_executors(project: Project):
    stack = Stack.load(project)
    assert stack.cluster is not None
    settings = stack.cluster.settings()

    for where in ("driver", "executor"):
        assert settings[f"spark.{where}.extraClassPath"] == jars.class_path(project.jars, JARS)


def test_stopping_the_local_stack_stops_the_cluster_too(project: Project, tmp_path: Path):
    stack = Stack.load(project)
    assert stack.cluster is not None
    project.write_ports(stack.ports)
    session = stack.cluster.session(WORKERS[0])
    session.start(["sleep", "600"], environ={}, cwd=tmp_path)

    lifecycle.down(Project(project.root, tmp_path / "local"), Progress(Console(quiet=True)))

    assert not session.is_alive()


def test_status_shows_the_cluster_where_it_runs_and_only_there(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PENSTOCK_LOCAL", str(tmp_path / "local"))
    stack = Stack.load(project)
    assert stack.cluster is not None
    session = stack.cluster.session("spark-master")

    status()
    assert "cluster/" not in capsys.readouterr().out, "no cluster was ever made"
    project.write_ports(stack.ports)
    session.start(["sleep", "600"], environ={}, cwd=tmp_path)
    try:
        status()
        shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    finally:
        session.stop()
    assert ["cluster/spark-master", "running", stack.cluster.master, str(session.log)] in shown
    assert ["cluster/source", "stopped"] in [line[:2] for line in shown]

    status()
    assert "cluster/" not in capsys.readouterr().out, "nothing of it runs"
