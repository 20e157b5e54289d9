"""The local stack comes up whole from any state, keeps its secrets to itself, and goes down whole."""

import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from rich.console import Console

from stack import lifecycle, ports, status
from stack.errors import StackError
from stack.paths import Project
from stack.progress import Progress
from stack.servers import databases
from stack.stack import Stack

HERE = Project.here()
SECRET_FILES = {"secrets.json", "env.sh", "airflow-login.json"}


def quiet() -> Progress:
    return Progress(Console(quiet=True))


@pytest.fixture(scope="module")
def project(servers_home: Path) -> Iterator[Project]:
    """A checkout like ours with a `.local` of its own; what is slow to make (jars, compiled code) is borrowed."""
    lifecycle.set_up(HERE, quiet())
    project = Project(HERE.root, servers_home / "stack")
    project.local.mkdir()
    project.write_ports({name: ports.choose() for name in ("source", "control", "airflow")})
    for borrowed in (HERE.jars, HERE.local / "numba"):
        (project.local / borrowed.name).symlink_to(borrowed)
    yield project
    lifecycle.clean(project, quiet())


@pytest.fixture
def servers(project: Project) -> Stack:
    """The two servers, brought up from whatever the test before left behind: that has to work anyway."""
    return lifecycle.start_servers(project, quiet())


def one(dsn: str, statement: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchone()[0] if cursor.description else None


def test_the_source_decodes_logically_and_bounds_what_a_slot_may_retain(servers: Stack):
    dsn = servers.source_dsn()

    assert one(dsn, "select current_user || '@' || current_database()") == "shop_app@shop"
    assert one(dsn, "show wal_level") == "logical"
    assert one(dsn, "show max_slot_wal_keep_size") == "4GB"
    assert one(dsn, "select not rolsuper from pg_roles where rolname = current_user") is True


def test_status_says_what_does_not_run_how_to_start_it_and_that_nothing_is_bootstrapped(servers: Stack):
    said = io.StringIO()

    status.show(servers, None, Console(file=said, soft_wrap=True, highlight=False))

    assert f"127.0.0.1:{servers.source.port}" in said.getvalue()
    assert "Nothing serves a UI: `make up`" in said.getvalue()
    assert "not bootstrapped" in said.getvalue()


def test_one_role_may_decode_and_the_reader_may_not_and_neither_reads_ungranted_tables_nor_makes_any(servers: Stack):
    one(servers.source_dsn(), "create table if not exists public.orders (id int)")
    making = "select slot_name from pg_create_logical_replication_slot('s', 'pgoutput')"
    capture, reader = servers.source_dsn(databases.CAPTURE), servers.source_dsn(databases.READER)

    slot = one(capture, making)
    one(capture, "select pg_drop_replication_slot('s')")

    assert slot == "s"
    for dsn in (capture, reader):
        for refused in ("select count(*) from public.orders", "create table public.mine (id int)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                one(dsn, refused)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        one(reader, making)


def test_ledger_and_catalog_share_a_database_that_airflow_cannot_enter(servers: Stack):
    assert one(servers.ledger_dsn(), "select count(*) from iceberg_tables") == 0
    foreign = servers.control.dsn(databases.PENSTOCK, databases.AIRFLOW, servers.secrets.airflow)
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(foreign)


def test_the_airflow_connections_lead_to_the_servers(servers: Stack):
    environment = servers.environment()

    for name in ("SOURCE", "LEDGER", "CATALOG"):
        conn = json.loads(environment[f"AIRFLOW_CONN_PENSTOCK_{name}"])
        keys = {"host": "host", "port": "port", "schema": "dbname", "login": "user", "password": "password"}
        with psycopg.connect(**{keys[key]: value for key, value in conn.items() if key in keys}) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
    assert json.loads(environment["AIRFLOW_CONN_PENSTOCK_SPARK"]) == {"conn_type": "spark", "host": "local[2]"}


def test_a_shell_that_sources_the_environment_file_gets_the_same_environment(servers: Stack):
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    script = f'. "$1"; exec "{sys.executable}" -c "{show}"'
    said = subprocess.run(
        ["sh", "-c", script, "sh", servers.project.environment], capture_output=True, text=True, check=True
    )

    found = json.loads(said.stdout)
    assert {name: found[name] for name in servers.environment()} == servers.environment()
    assert found["PATH"].split(":")[:2] == [str(Path(sys.executable).parent), str(HERE.root / "bin")]


def test_secrets_are_only_in_files_that_only_their_owner_reads(servers: Stack):
    secrets = [value.encode() for value in vars(servers.secrets).values()]
    # The servers keep verifiers, never passwords; their folders are no one else's business anyway (0700).
    ours = [
        path
        for path in servers.project.local.rglob("*")
        if path.is_file() and not path.is_relative_to(servers.source.home.parent) and path.suffix != ".jar"
    ]
    telling = {path.name for path in ours if any(secret in path.read_bytes() for secret in secrets)}

    assert telling <= SECRET_FILES
    assert {"secrets.json", "env.sh"} <= telling
    for name in telling:
        assert stat.S_IMODE((servers.project.local / name).stat().st_mode) == 0o600
    for server in (servers.source, servers.control):
        assert not any(secret in server.log.read_bytes() for secret in secrets)
        assert stat.S_IMODE(server.data.stat().st_mode) == 0o700


def test_spark_defaults_hold_no_secret_and_no_address_of_the_catalog(servers: Stack):
    reported = (servers.project.spark_conf / "spark-defaults.conf").read_text()

    assert "spark.sql.catalog.lake.type jdbc" in reported
    assert "password" not in reported.replace("(?i)secret|password|token", "")
    assert "jdbc:postgresql" not in reported


def test_secrets_are_not_shown_by_a_representation(servers: Stack):
    shown = repr(servers) + repr(servers.source) + repr(servers.airflow.api)

    assert not any(value in shown for value in vars(servers.secrets).values())


def test_a_second_up_changes_nothing(servers: Stack):
    pids = servers.source.pid(), servers.control.pid()

    again = lifecycle.start_servers(servers.project, quiet())

    assert (again.source.pid(), again.control.pid()) == pids
    assert again.ports == servers.ports
    assert again.secrets == servers.secrets


def test_up_after_everything_was_killed_finds_the_data_again(servers: Stack):
    one(servers.source_dsn(), "create table public.kept (id int)")
    for server in (servers.source, servers.control):
        os.kill(server.pid(), signal.SIGKILL)

    again = lifecycle.start_servers(servers.project, quiet())

    assert one(again.source_dsn(), "select count(*) from public.kept") == 0


def test_a_port_taken_while_the_stack_was_down_is_replaced_and_remembered(servers: Stack):
    lifecycle.down(servers.project, quiet())
    with socket.create_server((ports.LOOPBACK, servers.ports["source"])):
        moved = lifecycle.start_servers(servers.project, quiet())

        assert moved.source.port != servers.source.port
        assert moved.control.port == servers.control.port
        assert one(moved.source_dsn(), "select 1") == 1
    assert Stack.load(servers.project).ports == moved.ports
    assert str(moved.source.port) in servers.project.environment.read_text()


def test_down_stops_both_servers_and_is_content_to_find_nothing(servers: Stack):
    lifecycle.down(servers.project, quiet())

    assert not servers.source.is_running()
    assert not servers.control.is_running()
    lifecycle.down(servers.project, quiet())


def test_lost_passwords_are_named_as_the_reason(servers: Stack):
    kept = servers.project.secrets.rename(servers.project.local / "kept.json")
    try:
        with pytest.raises(StackError, match="initialised with another one"):
            lifecycle.start_servers(servers.project, quiet())
    finally:
        kept.rename(servers.project.secrets)


def test_illegible_passwords_are_not_replaced(servers: Stack):
    whole = servers.project.secrets.read_text()
    servers.project.secrets.write_text(whole[:40])

    with pytest.raises(StackError, match="not legible JSON"):
        Stack.load(servers.project)
    assert servers.project.secrets.read_text() == whole[:40]
    servers.project.secrets.write_text(whole)


def test_two_commands_never_change_one_stack_at_once(project: Project):
    with lifecycle.alone(project), pytest.raises(StackError, match="only command at work"), lifecycle.alone(project):
        pytest.fail("a second holder got in")


def test_remembered_ports_that_are_illegible_count_as_none(tmp_path: Path):
    project = Project(HERE.root, tmp_path)
    project.state.write_text('{"ports": "all"}')

    assert Stack.load(project).ports == {"source": 5440, "control": 5441, "airflow": 8080}


def test_clean_leaves_nothing(servers: Stack):
    lifecycle.clean(servers.project, quiet())

    assert not servers.project.local.exists()
    assert not servers.source.home.exists()
    assert not servers.source.is_running()
