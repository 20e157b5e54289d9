"""A table joins the publication while transactions write to it: what the stream has of them, and when a copy has the rest."""

import psycopg
import pytest

from penstock.source import catalog, server_info, session, slot
from penstock.source.catalog_snapshot import read_catalog
from tests.source.conftest import decoded, inserted, window


@pytest.fixture(params=["postgres15", "postgres16", "postgres18"])
def database(request, new_server):  # named here, so that the test is known to need one
    """A database of the test's own, also on 18: the server decides what it loses."""
    server = request.getfixturevalue(request.param)
    with server.temporary_database(f"joining{server.port}") as database:
        yield database


@pytest.fixture
def other(database):
    """A second session of the application."""
    with database.connect(application_name="the shop's other session") as other:
        yield other


def begin(writer: psycopg.Connection) -> None:
    writer.execute("create table t (id int primary key); create table published (id int primary key)")
    writer.execute("create publication p for table only published")
    writer.execute("select pg_create_logical_replication_slot('s', 'pgoutput')")


def sent(source, conn) -> list[str | None]:
    """The keys of the rows that the stream inserts, in its order."""
    messages = decoded(window(source, server_info.position(conn).flushed))
    return [row["id"] for row in inserted(messages)]


def seen(conn) -> int:
    """Look at the publication as capture does, and return the bound of what was written before."""
    assert "t" in {table.name for table in read_catalog(conn, "p").tables}
    bound = server_info.sight(conn).xid
    assert bound is not None
    return bound


def waiting_for(conn, bound: int) -> set[int | None]:
    return {blocker.pid for blocker in server_info.open_before(conn, bound)}


@pytest.mark.parametrize("what", ["begin", "begin; savepoint a"])
def test_what_was_written_before_a_table_joined_is_not_sent_though_it_is_committed_after(
    source, conn, writer, other, what
):
    begin(writer)
    other.execute(what)
    other.execute("insert into t values (1)")
    writer.execute("alter publication p add table only t")
    bound = seen(conn)
    other.execute("insert into t values (2)")
    with slot.export_snapshot(source) as early:
        (rows,) = early.conn.execute("select count(*) from public.t").fetchone()
    assert rows == 0, "a copy of now has neither 1 nor 2"
    assert waiting_for(conn, bound) == {other.info.backend_pid}

    other.execute("commit")
    writer.execute("insert into t values (3)")

    assert sent(source, conn) == ["2", "3"], "1 would be lost: in no copy of before, and not in the stream"
    assert waiting_for(conn, bound) == set()
    with slot.export_snapshot(source) as late:
        assert late.conn.execute("select id from public.t order by id").fetchall() == [(1,), (2,), (3,)]


def test_a_writer_with_a_higher_id_than_the_one_who_alters_the_publication_is_waited_for(source, conn, writer, other):
    begin(writer)
    other.execute("begin; alter publication p add table only t")
    writer.execute("begin; insert into t values (1)")
    other.execute("commit")

    (xmax,) = conn.execute("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    bound = seen(conn)
    (writers,) = writer.execute("select pg_current_xact_id()::text::bigint").fetchone()

    assert xmax <= writers < bound, "the xmax of a snapshot would not do"
    assert waiting_for(conn, xmax) == set()
    assert waiting_for(conn, bound) == {writer.info.backend_pid}
    writer.execute("commit")
    assert sent(source, conn) == []


def test_prepared_transactions_are_waited_for_by_name(conn, writer, other):
    begin(writer)
    other.execute("begin; insert into t values (1)")
    other.execute("prepare transaction 'half'")
    writer.execute("alter publication p add table only t")

    bound = seen(conn)
    (blocker,) = server_info.open_before(conn, bound)
    assert (blocker.pid, blocker.prepared) == (None, "half")

    other.execute("commit prepared 'half'")
    assert waiting_for(conn, bound) == set()


def test_who_only_reads_began_later_or_writes_to_another_database_is_not_waited_for(conn, writer, other, database):
    begin(writer)
    other.execute("begin isolation level repeatable read; select count(*) from t")
    with database.server.temporary_database(f"elsewhere{database.name}") as elsewhere, elsewhere.connect() as stranger:
        stranger.execute("begin; create table u (id int)")
        writer.execute("alter publication p add table only t")
        bound = seen(conn)
        writer.execute("begin; insert into t values (1)")

        assert waiting_for(conn, bound) == set()
        stranger.execute("rollback")
    writer.execute("rollback")


def test_membership_is_another_one_after_a_table_left_and_came_back(conn, writer):
    begin(writer)
    writer.execute("create table m (id int primary key) partition by range (id)")
    writer.execute(
        "create table m_1 partition of m for values from (0) to (9); create schema a; create table a.u (id int)"
    )
    writer.execute("alter publication p add table only t, m, tables in schema a")

    def members() -> dict[str, tuple[str, ...]]:
        return {table.name: table.membership for table in read_catalog(conn, "p").tables}

    first = members()
    assert set(first) == {"published", "t", "m_1", "u"}
    assert all(first.values())
    writer.execute("alter publication p set table only published, only t, m, tables in schema a")
    assert members() == first, "nothing has left"

    writer.execute("alter publication p drop table t, m, tables in schema a")
    writer.execute("alter publication p add table t, m, tables in schema a")
    again = members()
    assert again["published"] == first["published"]
    assert all(not set(again[name]) & set(first[name]) for name in ("t", "m_1", "u"))


def test_a_publication_of_all_tables_has_members(conn, writer):
    writer.execute("create table t (id int primary key); create publication p for all tables")

    (table,) = read_catalog(conn, "p").tables

    assert table.membership == ("all tables",)
    assert not catalog.members(conn, "p")[table.oid].listed


def test_a_role_without_privileges_sees_who_is_waited_for(conn, writer, other, new_role):
    begin(writer)
    other.execute("begin; insert into t values (1)")
    writer.execute("alter publication p add table only t")
    bound = seen(conn)
    with session.connect(new_role("reader"), what="test") as reader:
        assert waiting_for(reader, bound) == {other.info.backend_pid}
        assert server_info.sight(reader).xid > bound


def test_only_a_transaction_that_was_rolled_back_or_is_yet_to_come_is_known_to_be_undone(conn, writer):
    def xid() -> int:
        return int(writer.execute("select pg_current_xact_id()::text::bigint").fetchone()[0])

    committed = xid()
    writer.execute("begin")
    aborted = xid()
    writer.execute("rollback; begin")
    open_ = xid()

    found = [server_info.why_undone(conn, each) for each in (3, committed, open_, aborted, open_ + 1, open_ + 1000)]
    writer.execute("rollback")

    assert found == [None, None, None, "it was rolled back", *["it has not been given out yet"] * 2]
