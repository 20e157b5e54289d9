"""The servers of the local stack come up from whatever state they were left in, and go down as asked."""

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from stack import ports
from stack.errors import StackError
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from stack.servers.postgres_user import Account, reachable_folder

EXPECTED_SETTINGS = {
    "wal_level": "logical",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "TimeZone": "UTC",
}


@pytest.fixture
def server(new_server, binaries16: Binaries) -> Iterator[Server]:
    server = new_server(binaries16)
    yield server
    server.remove()


def write_a_row(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("create table if not exists kept (n int)")
        connection.execute("insert into kept values (1)")


def rows(server: Server) -> int:
    with server.connect() as connection:
        return connection.execute("select count(*) from kept").fetchone()[0]


def connection_version(server: Server) -> str:
    with server.connect() as connection:
        return connection.execute("show server_version").fetchone()[0]


def test_a_server_decodes_logically_and_listens_on_loopback_only(postgres: Server):
    with postgres.connect() as connection:
        shown = {name: connection.execute(f"show {name}").fetchone()[0] for name in EXPECTED_SETTINGS}

    assert shown == EXPECTED_SETTINGS
    assert postgres.version in connection_version(postgres)


def test_a_wrong_password_is_refused(postgres: Server):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.dsn(password="wrong"))


def test_the_password_is_in_no_representation_and_in_no_file_that_others_read(server: Server):
    assert server.password not in repr(server)
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    assert [path for path in server.home.iterdir() if path.is_file()] == [server.log]
    assert server.password not in server.log.read_text()


def test_starting_a_running_server_changes_nothing(server: Server):
    pid = server.pid()

    server.start()

    assert server.pid() == pid


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_stopped_server_comes_back_with_its_rows(server: Server, mode):
    write_a_row(server)

    server.stop(mode)
    assert not server.is_running()
    server.start()

    assert rows(server) == 1


def test_a_killed_server_comes_back_with_its_rows_while_its_children_still_linger(server: Server):
    write_a_row(server)
    with server.connect() as holder:
        children = holder.info.backend_pid
        server.kill()
        assert not server.is_running()
        server.start()

    assert rows(server) == 1
    assert server.pid() != children


def test_a_pid_file_left_by_a_reboot_does_not_stop_the_server_even_if_the_number_is_taken(server: Server):
    write_a_row(server)
    server.stop()
    taken_by_another = server.data / "postmaster.pid"
    taken_by_another.write_text(f"{os.getpid()}\n{server.data}\n1\n{server.port}\n\n127.0.0.1\n")
    server.account.own(taken_by_another)

    assert server.pid() is None
    server.stop()
    server.start()

    assert rows(server) == 1
    os.kill(os.getpid(), 0)


def test_a_data_folder_whose_making_was_cut_short_is_created_again(new_server, binaries16, servers_home: Path):
    server = Server(servers_home / "cut-short", binaries16, ports.choose(), "only-for-tests")
    (server.home / "data.part" / "base").mkdir(parents=True)
    (server.home / "password.part").write_text("left over")

    try:
        server.start()
        assert server.is_running()
        assert sorted(path.name for path in server.home.iterdir()) == ["data", "server.log"]
    finally:
        server.remove()
    assert not server.home.exists()


def test_a_taken_port_is_named_in_the_error(server: Server, binaries16: Binaries, servers_home: Path):
    late = Server(servers_home / "late", binaries16, server.port, "only-for-tests")
    try:
        with pytest.raises(StackError, match=f"port {server.port} to be free") as caught:
            late.start()
    finally:
        late.remove()

    assert caught.value.log == late.log


def test_changed_settings_hold_after_a_restart(server: Server):
    server.settings = {**server.settings, "max_slot_wal_keep_size": "64MB", "cluster_name": "it's ours"}

    server.restart()

    with server.connect() as connection:
        assert connection.execute("show max_slot_wal_keep_size").fetchone()[0] == "64MB"
        assert connection.execute("show cluster_name").fetchone()[0] == "it's ours"


def test_a_client_program_reaches_the_server_and_no_command_line_shows_the_password(postgres16: Server):
    said = postgres16.run_program("psql", "-XAtc", "select 6 * 7")

    assert said == "42\n"


def test_a_program_that_fails_says_what_it_said(postgres16: Server):
    with pytest.raises(StackError, match='relation "nowhere" does not exist'):
        postgres16.run_program("psql", "-XAtc", "select * from nowhere")


def test_a_database_is_dropped_with_its_slots_sessions_and_prepared_transactions(postgres: Server):
    with postgres.temporary_database("Zu löschen") as database:
        database.execute("create table t (id int)")
        database.execute("select pg_create_logical_replication_slot('to_go', 'pgoutput')")
        with database.connect(autocommit=False) as preparing:
            preparing.execute("insert into t values (1)")
            preparing.execute("prepare transaction 'left over'")
        still_open = database.connect()

    with postgres.connect() as connection:
        gone = "select count(*) from pg_database where datname = 'Zu löschen'"
        assert connection.execute(gone).fetchone()[0] == 0
        assert connection.execute("select count(*) from pg_replication_slots").fetchone()[0] == 0
    with pytest.raises(psycopg.OperationalError):
        still_open.execute("select 1")


def test_each_test_gets_an_empty_database(database: Database):
    assert database.execute("select relname from pg_class where relnamespace = 'public'::regnamespace") == []
    assert database.execute("select %s::int + 1", 41) == [(42,)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to run PostgreSQL as somebody else")
def test_root_runs_postgres_as_nobody_even_from_a_folder_that_this_user_cannot_enter(tmp_path: Path, monkeypatch):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o700)
    monkeypatch.setattr("stack.servers.postgres_user.PERSISTENT_TEMPORARY", open_folder := tmp_path.parent / "open")
    open_folder.mkdir()
    for folder in (open_folder, *open_folder.parents):
        if folder != Path("/") and not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    shelter = reachable_folder(locked, Account.for_postgres())

    assert shelter.parent == open_folder
    assert Account.for_postgres().can_enter(shelter)
    assert reachable_folder(locked, Account.for_postgres()) == shelter


def test_a_killed_process_is_not_taken_for_a_running_server(server: Server):
    os.kill(server.pid(), signal.SIGKILL)
    server.stop()
    server.start()

    assert server.is_running()
