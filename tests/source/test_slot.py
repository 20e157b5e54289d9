"""A slot is made with the snapshot of its first position, confirmed to the byte, and dropped only when no one holds it."""

import os
import signal
import threading
from contextlib import closing

import psycopg
import pytest

from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.source import server_info, session, slot
from tests.source.conftest import decoded, inserted, window
from tests.waiting import wait_until


def make_slot(writer: psycopg.Connection, name: str = "s") -> Lsn:
    (text,) = writer.execute(
        "select lsn::text from pg_create_logical_replication_slot(%s, 'pgoutput')", (name,)
    ).fetchone()
    return Lsn.parse(text)


def walsenders(writer: psycopg.Connection, database: str) -> int:
    query = "select count(*) from pg_stat_activity where backend_type = 'walsender' and datname = %s"
    return writer.execute(query, (database,)).fetchone()[0]


def rows_seen(source, exported: slot.Exported) -> list[int]:
    with session.connect(source, what="test") as reader, reader.transaction():
        reader.execute("set transaction isolation level repeatable read")
        reader.execute(f"set transaction snapshot '{exported.snapshot_name}'")
        assert reader.execute("select pg_current_snapshot()::text").fetchone() == (exported.snapshot,)
        return [n for (n,) in reader.execute("select n from public.t order by n")]


def test_the_exported_snapshot_and_the_slot_divide_the_rows_between_them(source, conn, writer):
    writer.execute(
        "create table t (n int primary key); create publication p for table t; insert into t values (1), (2)"
    )

    with slot.create_exporting(source, "s", timeout=30) as exported:
        writer.execute("insert into t values (3)")
        before = rows_seen(source, exported)
    after = inserted(decoded(window(source, server_info.position(conn).flushed)))

    assert before == [1, 2]
    assert after == [{"n": "3"}]
    assert slot.read_slot(conn, "s").confirmed == exported.lsn


def test_an_exact_snapshot_sees_what_the_stream_has_up_to_its_position_and_its_slot_is_gone(
    source, conn, database, writer
):
    writer.execute("create table t (n bigint generated always as identity primary key)")
    writer.execute("create publication p for table t")
    stop = threading.Event()

    def insert() -> None:
        with database.connect() as own:
            while not stop.is_set():
                own.execute("insert into t default values")

    make_slot(writer)
    writers = [threading.Thread(target=insert) for _ in range(4)]
    for each in writers:
        each.start()
    try:
        wait_until(lambda: writer.execute("select from t limit 1").fetchall(), "a row of the writers")
        for number in range(3):
            with slot.exact_snapshot(source, f"exact_{number}", timeout=30, what="test") as exported:
                assert [each.name for each in slot.all_slots(conn) if each.name.startswith("exact")] == []
                seen = rows_seen(source, exported)
                streamed = sorted(int(row["n"]) for row in inserted(decoded(window(source, exported.lsn))))
                assert seen == streamed
                assert len(seen) > 0
    finally:
        stop.set()
        for each in writers:
            each.join()


def test_an_exact_snapshot_that_is_blocked_names_who_blocks_and_leaves_no_slot(source, conn, database, writer):
    writer.execute("create table t (n int)")
    with database.connect(autocommit=False) as open_:
        open_.execute("insert into t values (1)")
        with (
            pytest.raises(SourceError, match=r"\[slot-creation-blocked\].*process"),
            slot.exact_snapshot(source, "exact", timeout=1, what="test"),
        ):
            pass
        open_.rollback()
    assert slot.read_slot(conn, "exact") is None


def test_a_snapshot_of_later_needs_no_slot_and_lies_before_its_position(source, conn, writer):
    writer.execute("create table t (n int primary key); insert into t values (1)")

    with slot.export_snapshot(source) as exported:
        writer.execute("insert into t values (2)")
        assert rows_seen(source, exported) == [1]
    end = server_info.position(conn)

    assert exported.lsn < end.flushed
    assert int(exported.snapshot.split(":")[1]) < end.xid_horizon


def test_where_the_wal_stands_at_the_begin_of_a_segment_or_a_page_the_position_is_one_that_is_flushed(
    source, conn, writer
):
    fill = "select pg_logical_emit_message(false, '', repeat('x', {}))".format

    def inserted_at() -> int:
        return Lsn.parse(writer.execute("select pg_current_wal_insert_lsn()::text").fetchone()[0])

    def to_a_segment() -> None:
        writer.execute("select pg_switch_wal()")

    def to_a_page() -> None:
        before = inserted_at()
        writer.execute(fill(1000))
        used, left = inserted_at() - before, -inserted_at() % 8192
        writer.execute(fill(1000 + (left - used) % 8192 if left >= used else 1000))

    for advance, header, unit in ((to_a_segment, 40, 16 << 20), (to_a_page, 24, 8192)):
        for _ in range(100):  # the server writes of its own accord, too
            advance()
            before = inserted_at()
            with slot.export_snapshot(source) as exported:
                pass
            if before % unit == header and inserted_at() == before:
                break
        assert exported.lsn % unit == 0, "nothing lies behind the header"
        wait_until(lambda lsn=exported.lsn: server_info.position(conn).flushed >= lsn)  # without another record


def test_creation_that_is_blocked_names_who_blocks_and_leaves_no_slot(source, conn, database, writer):
    writer.execute("create table t (secret text)")
    with database.connect(application_name="a long report", autocommit=False) as blocker:
        blocker.execute("insert into t values ('the secret value')")
        writer.execute("begin; insert into t values (''); prepare transaction 'left over'")

        with pytest.raises(SourceError) as caught, slot.create_exporting(source, "s", timeout=1):
            pytest.fail("no slot can be made while a transaction is open")
        pid = blocker.info.backend_pid
        blocker.rollback()
    writer.execute("rollback prepared 'left over'")

    assert caught.value.slug == "slot-creation-blocked"
    assert f'process {pid} (a long report) of role "postgres" in database "{database.name}", open for' in str(
        caught.value
    )
    assert 'prepared "left over"' in str(caught.value)
    assert "secret" not in str(caught.value)
    assert slot.read_slot(conn, "s") is None
    with slot.create_exporting(source, "s", timeout=30):
        assert slot.read_slot(conn, "s") is not None


def test_a_role_that_may_not_see_others_still_learns_which_process_blocks(new_role, database, writer):
    writer.execute("create table t (n int)")
    with database.connect(autocommit=False) as blocker, session.connect(new_role("blind"), what="test") as conn:
        blocker.execute("insert into t values (1)")

        found = [each for each in server_info.open_now(conn) if each.pid == blocker.info.backend_pid]

    assert len(found) == 1
    assert f"process {found[0].pid}" in found[0].describe()


class Interrupted(BaseException):
    """What Airflow's SIGTERM handler raises in a task that waits."""


def test_an_interrupted_creation_is_cancelled_on_the_server_too(source, conn, database, writer):
    writer.execute("create table t (n int)")

    def interrupt(*_: object) -> None:
        raise Interrupted

    previous = signal.signal(signal.SIGUSR1, interrupt)
    later = threading.Timer(1, os.kill, (os.getpid(), signal.SIGUSR1))
    with database.connect(autocommit=False) as blocker:
        blocker.execute("insert into t values (1)")
        later.start()
        with pytest.raises(Interrupted), slot.create_exporting(source, "s", timeout=30):
            pytest.fail("no slot can be made while a transaction is open")
        signal.signal(signal.SIGUSR1, previous)
        # left alone, it would wait with the transaction that blocks it, and keep the slot's name taken until then
        wait_until(lambda: slot.read_slot(conn, "s") is None and walsenders(writer, database.name) == 0)


def test_a_slot_of_the_same_name_is_refused_and_kept(source, conn, writer):
    made = make_slot(writer)

    with pytest.raises(SourceError, match="already exists") as caught, slot.create_exporting(source, "s", timeout=30):
        pass

    assert caught.value.slug == "slot-exists"
    assert slot.read_slot(conn, "s").confirmed == made


def test_a_slot_whose_snapshot_cannot_be_read_is_not_left_behind(source, conn, monkeypatch):
    def fails(*_: object) -> str:
        raise SourceError("source-unreachable", "for this test")

    monkeypatch.setattr(slot, "_text_of", fails)

    with pytest.raises(SourceError, match="for this test"), slot.create_exporting(source, "s", timeout=30):
        pass
    assert slot.read_slot(conn, "s") is None


def test_a_role_without_replication_may_not_make_a_slot(new_role):
    with pytest.raises(SourceError) as caught, slot.create_exporting(new_role("plain"), "s", timeout=30):
        pass

    assert caught.value.slug == "source-auth"


def test_every_commit_is_in_exactly_one_window_wherever_the_windows_split(source, conn, writer):
    writer.execute("create table t (n int primary key); create publication p for table t")
    position = make_slot(writer)
    for n in range(15):
        writer.execute("insert into t values (%s)", (n,))
    end = server_info.position(conn).flushed

    seen: list[str | None] = []
    while position < end:
        upto = Lsn(min(end, position + 199))
        seen += [row["n"] for row in inserted(decoded(window(source, upto)))]
        position = slot.advance(conn, "s", upto)
        assert position == upto

    assert slot.read_slot(conn, "s").confirmed == end
    assert seen == [str(n) for n in range(15)]


def test_the_position_that_the_server_returns_is_believed(conn, writer):
    make_slot(writer)
    flushed = server_info.position(conn).flushed

    confirmed = slot.advance(conn, "s", Lsn(flushed + (1 << 30)))

    assert flushed <= confirmed < flushed + (1 << 30)
    assert slot.read_slot(conn, "s").confirmed == confirmed


def test_an_advance_frees_the_wal_up_to_the_last_restart_point_where_one_call_stops_at_the_first(conn, writer):
    """One call of the server's function takes the first restart point that it meets: hence two in `advance`."""
    for name in ("once", "s"):
        make_slot(writer, name)
    for _ in range(4):
        writer.execute("select pg_logical_emit_message(false, '', repeat('x', 100000))")
        writer.execute("checkpoint")  # which writes a restart point
    flushed = server_info.position(conn).flushed

    def restart(name: str) -> Lsn:
        found = slot.read_slot(conn, name)
        assert found is not None
        assert found.restart is not None
        return found.restart

    def call(name: str) -> None:
        writer.execute("select pg_replication_slot_advance(%s, %s::pg_lsn)", (name, str(flushed)))

    call("once")
    slot.advance(conn, "s", flushed)
    assert restart("once") < restart("s"), "one call is enough for this server: then the second may go"

    freed = restart("s")
    for name in ("once", "s"):
        call(name)
        assert restart(name) == freed, "a call more frees more"


def test_a_slot_that_is_ahead_is_not_moved_back(conn, writer):
    start = make_slot(writer)
    writer.execute("create table t (n int)")
    ahead = slot.advance(conn, "s", server_info.position(conn).flushed)

    with pytest.raises(SourceError, match="cannot advance replication slot") as caught:
        slot.advance(conn, "s", start)

    assert caught.value.slug == "slot-ahead"
    assert slot.read_slot(conn, "s").confirmed == ahead


def test_a_missing_slot_is_named_by_every_verb(conn):
    assert slot.read_slot(conn, "s") is None
    for verb in (lambda: slot.advance(conn, "s", Lsn(1)), lambda: slot.drop(conn, "s")):
        with pytest.raises(SourceError, match='replication slot "s" does not exist') as caught:
            verb()
        assert caught.value.slug == "slot-missing"


def test_a_slot_in_use_is_neither_dropped_nor_advanced(source, conn, writer):
    make_slot(writer)
    writer.execute("create publication p")
    with closing(psycopg.connect(source.conninfo(), replication="database", autocommit=True)) as subscriber:
        subscriber.pgconn.exec_(b"START_REPLICATION SLOT s LOGICAL 0/0 (proto_version '1', publication_names 'p')")
        assert slot.read_slot(conn, "s").active

        for verb in (lambda: slot.drop(conn, "s"), lambda: slot.advance(conn, "s", server_info.position(conn).flushed)):
            with pytest.raises(SourceError, match="is active for PID") as caught:
                verb()
            assert caught.value.slug == "slot-in-use"
        with pytest.raises(SourceError, match="is active for PID") as caught:
            window(source, server_info.position(conn).flushed)
        assert caught.value.slug == "slot-in-use"
    wait_until(lambda: not slot.read_slot(conn, "s").active)

    slot.drop(conn, "s")

    assert slot.read_slot(conn, "s") is None


def test_the_facts_of_a_slot_are_the_servers_on_every_version(conn, writer, database):
    make_slot(writer)
    writer.execute("select pg_create_physical_replication_slot('physical')")
    try:
        found = slot.read_slot(conn, "s")
        physical = slot.read_slot(conn, "physical")
        assert {each.name for each in slot.all_slots(conn)} >= {"s", "physical"}
    finally:
        writer.execute("select pg_drop_replication_slot('physical')")

    assert (found.plugin, found.slot_type, found.database) == ("pgoutput", "logical", database.name)
    assert (found.temporary, found.active, found.two_phase, found.synced) == (False,) * 4
    assert (found.wal_status, found.invalidation, found.safe_wal_size) == ("reserved", None, None)
    assert found.catalog_xmin_age >= 0
    assert found.retained >= found.unread >= 0
    assert (physical.plugin, physical.database, physical.confirmed, physical.retained) == (None, None, None, None)
