"""Servers that cannot serve, or no longer: each on a server of its own, for its settings or its fate."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.source import preflight, publication, server_info, session, slot
from penstock.source.server_errors import translating
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests.conftest import standby_of
from tests.source.conftest import decoded, inserted, pipeline, window
from tests.waiting import wait_until

SCARCE = {"max_replication_slots": "1", "max_wal_senders": "3", "max_slot_wal_keep_size": "1MB", "hot_standby": "on"}


@pytest.fixture(scope="module")
def sick(new_server, binaries16: Binaries) -> Server:
    """A server with one slot, which it keeps almost no WAL for."""
    return new_server(binaries16, SCARCE)


@pytest.fixture(scope="module")
def healthy(sick: Server) -> dict[str, str]:
    """The settings that the server starts with."""
    return dict(sick.settings)


@pytest.fixture
def source(sick: Server, healthy: dict[str, str]) -> Iterator[Connection]:
    if sick.settings != healthy:
        sick.settings = healthy
        sick.restart()
    with sick.connect() as admin:
        admin.execute("create table t (n int primary key); create publication penstock_shop for table t")
    yield Connection("source", "127.0.0.1", sick.port, "postgres", sick.password, "postgres")
    sick.start()
    with sick.connect() as admin:
        admin.execute("select pg_drop_replication_slot(slot_name) from pg_replication_slots")
        admin.execute("drop publication if exists penstock_shop; drop table t")


def make_slot(source: Connection, name: str = "penstock_shop", *, timeout: int = 30) -> Lsn:
    with slot.create_exporting(source, name, timeout=timeout) as exported:
        return exported.lsn


def errors(source: Connection) -> dict[str, str]:
    with session.connect(source, what="test") as conn:
        found = preflight.check(conn, pipeline("public.*", adopt=True))
    return {finding.slug: finding.message for finding in found if finding.level == "error"}


def test_a_server_without_a_free_slot_is_named_before_and_at_creation(source):
    make_slot(source, "somebodys")

    with pytest.raises(SourceError, match="all replication slots are in use") as caught:
        make_slot(source)

    assert caught.value.slug == "no-free-slot"
    assert errors(source) == {"no-free-slot": "expected a free replication slot, got 1 of 1 slots taken"}


def test_a_server_that_does_not_write_logical_wal_is_named_before_and_at_creation(source, sick):
    sick.settings = {**sick.settings, "wal_level": "replica"}
    sick.restart()

    with pytest.raises(SourceError, match="wal_level") as caught:
        make_slot(source)

    assert caught.value.slug == "preflight-failed"
    assert errors(source) == {"preflight-failed": "expected logical, got replica"}


def test_a_slot_whose_wal_the_server_removed_is_lost_for_every_verb_but_drop(source, sick):
    make_slot(source)
    with sick.connect() as admin:
        for _ in range(4):
            admin.execute("insert into t values ((select coalesce(max(n), 0) + 1 from t)); select pg_switch_wal()")
        admin.execute("checkpoint")
    with session.connect(source, what="test") as conn:
        found = slot.read_slot(conn, "penstock_shop")
        assert (found.wal_status, found.invalidation, found.restart) == ("lost", "wal_removed", None)
        end = server_info.position(conn).flushed
        for verb in (
            lambda: window(source, end, slot="penstock_shop"),
            lambda: slot.advance(conn, "penstock_shop", end),
        ):
            with pytest.raises(SourceError) as caught:
                verb()
            assert caught.value.slug == "slot-lost", caught.value
            assert caught.value.directive.value == "halt"
    assert list(errors(source)) == ["slot-lost"]
    with session.connect(source, what="test") as conn:
        slot.drop(conn, "penstock_shop")


def test_a_stopped_server_is_unreachable_and_comes_back_with_the_slot_moved_back(source, sick):
    start = make_slot(source)
    with sick.connect() as admin:
        admin.execute("insert into t values (1)")
    with session.connect(source, what="test") as conn:
        confirmed = slot.advance(conn, "penstock_shop", server_info.position(conn).flushed)
    sick.stop("immediate")

    with pytest.raises(SourceError) as caught:
        session.connect(source, what="test")
    sick.start()

    assert (caught.value.slug, caught.value.directive.value) == ("source-unreachable", "retry")
    with session.connect(source, what="test") as conn:
        back = slot.read_slot(conn, "penstock_shop").confirmed
        assert start <= back < confirmed
        assert inserted(decoded(window(source, confirmed, slot="penstock_shop", publication="penstock_shop"))) == [
            {"n": "1"}
        ]
        assert slot.advance(conn, "penstock_shop", confirmed) == confirmed


def test_too_many_connections_count_as_unreachable(source, sick):
    sick.settings = {**sick.settings, "max_connections": "4", "superuser_reserved_connections": "0"}
    sick.restart()
    with (
        sick.connect(),
        sick.connect(),
        sick.connect(),
        sick.connect(),
        pytest.raises(SourceError, match="too many clients") as caught,
    ):
        session.connect(source, what="test")
    assert caught.value.slug == "source-unreachable"


@pytest.fixture
def standby(sick: Server, source: Connection, servers_home: Path) -> Iterator[Server]:
    """A hot standby of the server."""
    with standby_of(sick, servers_home / "standby", hot_standby_feedback="on") as standby:
        yield standby


def test_a_standby_decodes_what_it_has_replayed_once_the_primary_has_helped(sick, source, standby):
    replica = replace(source, port=standby.port)
    # The background writer may help by itself, every 15 s: where a transaction is open it is of no use.
    with sick.connect() as open_transaction:
        open_transaction.execute("begin")
        open_transaction.execute("select pg_current_xact_id()")
        with pytest.raises(SourceError, match=r"pg_log_standby_snapshot\(\) on the primary") as caught:
            make_slot(replica, timeout=1)
        open_transaction.execute("rollback")
    assert caught.value.slug == "slot-creation-blocked"

    helped = threading.Timer(0.5, log_standby_snapshot, (sick,))
    helped.start()
    make_slot(replica)
    helped.join()
    with sick.connect() as admin:
        admin.execute("insert into t values (7)")
        (written,) = admin.execute("select pg_current_wal_flush_lsn()::text").fetchone()

    with session.connect(replica, what="test") as conn:
        server = server_info.read_server(conn)
        assert (server.in_recovery, server.timeline) == (True, 1)
        wait_until(lambda: server_info.position(conn).flushed >= Lsn.parse(written))
        end = server_info.position(conn).flushed
        rows = inserted(decoded(window(replica, end, slot="penstock_shop", publication="penstock_shop")))
        assert rows == [{"n": "7"}]
        assert slot.advance(conn, "penstock_shop", end) == end
        with slot.export_snapshot(replica) as exported:
            assert exported.lsn >= Lsn.parse(written)
        assert [f for f in preflight.check(conn, pipeline("public.*", adopt=True)) if f.level == "error"] == []
        with pytest.raises(SourceError, match="read-only"):
            publication.ensure(conn, pipeline("public.*", publication="not_there"))


def log_standby_snapshot(primary: Server) -> None:
    with primary.connect() as admin:
        admin.execute("select pg_log_standby_snapshot()")


def test_a_damaged_page_wants_a_person_and_not_another_try(source, sick):
    with sick.connect() as admin:
        admin.execute("create table damaged as select generate_series(1, 100) as n; checkpoint")
        (file,) = admin.execute("select pg_relation_filepath('damaged')").fetchone()
    sick.stop()
    with (sick.data / file).open("r+b") as page:
        page.write(b"\xff" * 1000)
    sick.start()

    try:
        with (
            session.connect(source, what="test") as conn,
            pytest.raises(SourceError, match="invalid page in block 0") as caught,
            translating(conn.place),
        ):
            conn.execute("select * from public.damaged")
    finally:
        with sick.connect() as admin:
            admin.execute("drop table damaged")

    assert (caught.value.slug, caught.value.directive.value) == ("source-corrupt", "page")


def test_a_window_beyond_the_limit_of_temporary_files_wants_a_person(source, sick):
    sick.settings = {**sick.settings, "temp_file_limit": "1MB"}
    sick.restart()
    make_slot(source)
    with sick.connect() as admin:
        admin.execute("create table wide (n int primary key, v text); alter publication penstock_shop add table wide")
        admin.execute("insert into wide select n, repeat(md5(n::text), 200) from generate_series(1, 500) n")
    try:
        with session.connect(source, what="test") as conn:
            end = server_info.position(conn).flushed
        with pytest.raises(SourceError, match="temp_file_limit") as caught:
            window(source, end, slot="penstock_shop", publication="penstock_shop", work_mem=64 << 10)
    finally:
        with sick.connect() as admin:
            admin.execute("drop table wide")

    assert (caught.value.slug, caught.value.directive.value) == ("decoding-limit", "page")
