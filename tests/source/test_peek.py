"""A peek gives a window's messages again and again, in bounded memory, and releases the slot however it ends."""

from collections.abc import Iterator

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.shapes import ddl_message
from penstock.source import arrow, ddl_trigger, peek, server_info, session, slot
from penstock.source.peek import Logical
from penstock.wire.messages import Begin, Commit, Insert, LogicalMessage, Origin, Relation
from stack.servers.postgres import Database
from tests.source.conftest import connection_to, decoded, inserted, peeked, window
from tests.waiting import wait_until


@pytest.fixture
def filled(writer):
    """A table `t` with publication `p` and slot `s`, both before its rows."""
    writer.execute("create table t (n int primary key, v text); create publication p for table t")
    writer.execute("select pg_create_logical_replication_slot('s', 'pgoutput')")
    return writer


def backends(writer, name: str) -> int:
    (count,) = writer.execute("select count(*) from pg_stat_activity where application_name = %s", (name,)).fetchone()
    return count


def test_the_same_window_is_byte_for_byte_the_same_also_after_later_changes(source, conn, filled):
    filled.execute("insert into t select g, 'x' from generate_series(1, 100) g; update t set v = 'y' where n < 10")
    upto = server_info.position(conn).flushed
    first = window(source, upto)
    filled.execute("alter table t add later int default 7; delete from t")

    again = window(source, upto)

    assert again == first
    assert [type(message) for message in decoded(first)[:3]] == [Begin, Relation, Insert]
    assert isinstance(decoded(first)[-1], Commit)
    assert slot.read_slot(conn, "s").confirmed < upto


def test_arrays_are_bounded_and_together_complete(source, conn, filled):
    filled.execute("insert into t select g, repeat('x', 1000) from generate_series(1, 2000) g")

    arrays = list(peeked(source, server_info.position(conn).flushed, batch_bytes=100_000))

    assert all(isinstance(array, pa.BinaryArray) for array in arrays)
    assert max(array.nbytes for array in arrays) < 150_000
    assert sum(map(len, arrays)) == 2003
    rows = inserted(decoded(message for array in arrays for message in array.to_pylist()))
    assert [row["n"] for row in rows] == [str(n) for n in range(1, 2001)]


def test_one_message_larger_than_the_batch_comes_whole(source, conn, filled):
    filled.execute("insert into t values (1, repeat('x', 20000000))")

    (row,) = inserted(decoded(window(source, server_info.position(conn).flushed, batch_bytes=100_000)))

    assert row == {"n": "1", "v": "x" * 20_000_000}


def test_large_messages_come_in_pieces_each_alone_and_the_window_is_the_same(source, conn, filled, monkeypatch):
    filled.execute("alter table t replica identity full")
    filled.execute("insert into t select g, repeat('x', g * 37) from generate_series(1, 200) g")
    filled.execute("update t set v = v || 'y' where n % 3 = 0; delete from t where n % 5 = 0")
    filled.execute(
        "insert into t select g, case when g % 7 = 0 then repeat('z', 7000) end from generate_series(201, 400) g"
    )
    upto = server_info.position(conn).flushed
    expected = window(source, upto)
    monkeypatch.setattr(peek, "LARGE", 3000)
    monkeypatch.setattr(peek, "_PIECE", 1000)

    arrays = list(peeked(source, upto, batch_bytes=20_000))

    assert [message for array in arrays for message in array.to_pylist()] == expected
    large = [len(array) for array in arrays if array.nbytes >= 3000 and len(array[0].as_py()) >= 3000]
    assert large == [1] * sum(len(message) >= 3000 for message in expected)
    assert len(large) > 100


def test_a_window_that_is_decoded_otherwise_for_its_large_messages_is_refused(source, conn, filled, monkeypatch):
    filled.execute("insert into t values (1, repeat('x', 5000)), (2, repeat('y', 5000))")
    upto = server_info.position(conn).flushed
    monkeypatch.setattr(peek, "LARGE", 3000)
    load = session.load

    for other in ("where false and", "where octet_length(m.data) > 0 or"):

        def otherwise(name: str, other: str = other) -> str:
            return load(name).replace("where", other) if name == "source/peek/large_messages" else load(name)

        monkeypatch.setattr(session, "load", otherwise)
        with pytest.raises(SourceError, match=r"source-error.*decode the window alike twice"):
            window(source, upto)


def test_an_empty_window_gives_nothing(source, conn, filled):
    assert window(source, server_info.position(conn).flushed) == []


def test_names_are_quoted_whatever_they_hold(source, conn, writer):
    hostile = """o'clock "p", x\\"""
    writer.execute("create table t (n int primary key)")
    writer.execute(f'create publication "{hostile.replace(chr(34), chr(34) * 2)}" for table t')
    writer.execute("select pg_create_logical_replication_slot('s', 'pgoutput')")
    writer.execute("insert into t values (1)")

    messages = window(source, server_info.position(conn).flushed, publication=hostile)

    assert inserted(decoded(messages)) == [{"n": "1"}]


def test_origins_come_too_and_origin_none_leaves_foreign_changes_out(source, conn, filled, database):
    filled.execute("select pg_replication_origin_create(%s)", (f"elsewhere {database.name}",))
    filled.execute("select pg_replication_origin_session_setup(%s)", (f"elsewhere {database.name}",))
    filled.execute("insert into t values (1)")
    filled.execute("select pg_replication_origin_session_reset()")
    filled.execute("insert into t values (2)")
    filled.execute("select pg_replication_origin_drop(%s)", (f"elsewhere {database.name}",))
    upto = server_info.position(conn).flushed

    everything = decoded(window(source, upto))

    assert [message.name for message in everything if isinstance(message, Origin)] == [f"elsewhere {database.name}"]
    assert [row["n"] for row in inserted(everything)] == ["1", "2"]
    if database.server.major >= 16:
        ours = decoded(window(source, upto, origin_none=True))
        assert [row["n"] for row in inserted(ours)] == ["2"]
    else:
        with pytest.raises(SourceError, match="unrecognized pgoutput option: origin"):
            window(source, upto, origin_none=True)


def test_logical_messages_of_strangers_stay_on_the_server(source, conn, filled, database):
    for content in ("'x'", "repeat('x', 50000000)", "'{}'"):
        for prefix in ("mark", "penstock.ddl"):
            filled.execute(f"select pg_logical_emit_message(true, '{prefix}', {content})")
            filled.execute(f"select pg_logical_emit_message(false, '{prefix}', {content})")
    filled.execute("insert into t values (1)")
    filled.execute(ddl_trigger.install_statement())
    filled.execute("alter table t add a int")
    upto = server_info.position(conn).flushed

    came = {logical: decoded(window(source, upto, logical=logical)) for logical in Logical}

    proved = [each.content for each in came[Logical.PROVED] if isinstance(each, LogicalMessage)]
    assert [sorted(ddl_message.read_message(content).said.columns) for content in proved] == [[1, 2, 3]]
    assert not [
        each
        for logical in (Logical.UNSENT, Logical.PASSED_OVER)
        for each in came[logical]
        if isinstance(each, LogicalMessage)
    ]
    assert [row["n"] for row in inserted(came[Logical.UNSENT])] == ["1"]
    begun = {
        logical: [each.final_lsn for each in messages if isinstance(each, Begin)] for logical, messages in came.items()
    }
    assert begun[Logical.PROVED] == begun[Logical.PASSED_OVER]
    filled.execute(ddl_trigger.remove_statement())


def test_the_session_of_a_peek_has_the_memory_it_was_given(source, filled):
    settings = {"work_mem": "131072kB", "logical_decoding_work_mem": "131072kB"}
    with arrow.connect_arrow(source, what="test", settings=settings) as session:
        shown = session.ask(sql.SQL("select current_setting('work_mem'), current_setting('logical_decoding_work_mem')"))

    assert shown == [("128MB", "128MB")]


@pytest.mark.parametrize("dropped", ["slot", "publication", "publication of that time"])
def test_what_is_missing_is_named(source, conn, filled, dropped):
    filled.execute("insert into t values (1)")
    if dropped == "slot":
        slot.drop(conn, "s")
    else:
        filled.execute("drop publication p; insert into t values (2)")
    if dropped == "publication of that time":
        filled.execute("create publication p for table t; insert into t values (3)")

    with pytest.raises(SourceError, match=f"{dropped.split()[0]} .*(does not exist|were skipped)") as caught:
        window(source, server_info.position(conn).flushed)

    assert caught.value.slug == ("slot-missing" if dropped == "slot" else "publication-missing")
    assert caught.value.directive.value == "halt"


def test_a_window_that_is_not_read_in_time_leaves_the_slot_where_it_was(source, conn, filled):
    filled.execute("insert into t select g, repeat('x', 1000) from generate_series(1, 30000) g")
    before = slot.read_slot(conn, "s").confirmed
    messages = peeked(source, server_info.position(conn).flushed, statement_timeout=1, batch_bytes=10_000)
    next(messages)
    filled.execute("select pg_sleep(1.1)")  # more is left than the network holds, so the server waits for us

    with pytest.raises(SourceError, match="statement_timeout") as caught:
        list(messages)

    assert caught.value.slug == "source-timeout"
    assert slot.read_slot(conn, "s").confirmed == before


def test_an_error_in_the_middle_of_a_stream_keeps_its_name_and_hides_the_value(source, writer):
    writer.execute("create table n (v text); insert into n select '1' from generate_series(1, 50000)")
    writer.execute("insert into n values ('the secret value')")

    with arrow.connect_arrow(source, what="test", settings={}) as session:
        stream = session.stream(sql.SQL("select v::int from public.n"), 1000)
        next(stream)
        with pytest.raises(SourceError, match="22P02") as caught:
            list(stream)

    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_server_that_goes_away_in_the_middle_of_a_stream_counts_as_unreachable(source, writer):
    with arrow.connect_arrow(source, what="to be ended", settings={}) as session:
        stream = session.stream(sql.SQL("select repeat('x', 1000) from generate_series(1, 1000000)"), 10_000)
        next(stream)
        writer.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'penstock:to be ended'"
        )
        with pytest.raises(SourceError) as caught:
            list(stream)

    assert caught.value.slug == "source-unreachable"


def test_a_consumer_that_stops_early_frees_the_slot_and_the_session(source, conn, filled):
    filled.execute("insert into t select g, repeat('x', 500) from generate_series(1, 50000) g")
    messages = peeked(source, server_info.position(conn).flushed, batch_bytes=10_000, what="early")
    next(messages)
    assert backends(filled, "penstock:early") == 1

    messages.close()

    wait_until(lambda: backends(filled, "penstock:early") == 0)
    assert not slot.read_slot(conn, "s").active
    assert slot.advance(conn, "s", Lsn(slot.read_slot(conn, "s").confirmed))


def test_a_failed_peek_leaves_no_session_behind(source, conn, filled):
    with pytest.raises(SourceError):
        window(source, server_info.position(conn).flushed, slot="nobodys", what="failed")

    wait_until(lambda: backends(filled, "penstock:failed") == 0)


@pytest.fixture
def eighteen(postgres18) -> Iterator[psycopg.Connection]:
    """PostgreSQL 18 with a table `t`, a publication `p` and a slot `s`; the server passes over what is missing."""
    with postgres18.temporary_database("eighteen") as database, database.connect() as writer:
        writer.execute("create table t (n int primary key); create publication p for table t")
        writer.execute("select pg_create_logical_replication_slot('s', 'pgoutput')")
        yield writer


def test_18_only_warns_of_a_publication_that_was_missing_and_that_is_an_error_for_us(eighteen, postgres18):
    source = connection_to(Database(postgres18, "eighteen"))
    with session.connect(source, what="test") as conn:
        eighteen.execute("insert into t values (1); drop publication p; insert into t values (2)")
        with pytest.raises(SourceError, match='skipped loading publication "p"') as gone:
            window(source, server_info.position(conn).flushed)
        eighteen.execute("create publication p for table t; insert into t values (3)")
        with pytest.raises(SourceError, match='skipped loading publication "p"') as made_again:
            window(source, server_info.position(conn).flushed)

    assert [gone.value.slug, made_again.value.slug] == ["publication-missing"] * 2
    assert gone.value.directive.value == "halt"


def test_18_decodes_once_unless_the_publication_was_altered_lately(eighteen, postgres18, monkeypatch):
    source = connection_to(Database(postgres18, "eighteen"))
    looked: list[object] = []
    look = peek._refuse_skipped
    monkeypatch.setattr(peek, "_refuse_skipped", lambda *given: looked.append(given) or look(*given))
    with session.connect(source, what="test") as conn:
        eighteen.execute("insert into t values (1)")
        assert inserted(decoded(window(source, server_info.position(conn).flushed))) == [{"n": "1"}]
        assert looked == []

        eighteen.execute("alter publication p rename to q; alter publication q rename to p")
        assert inserted(decoded(window(source, server_info.position(conn).flushed))) == [{"n": "1"}]
        assert len(looked) == 1
