"""Whatever a role or a database has set, our sessions render values one way, and say what they are."""

import psycopg
import pytest
from psycopg import sql

from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.source import arrow, server_errors, server_info, session
from penstock.source.session import PINNED, SourceSession

# what a role might have set, and a value that it changes
LEAKS = {
    "DateStyle": ("SQL, DMY", "select date '2020-02-01'::text", "2020-02-01"),
    "IntervalStyle": ("iso_8601", "select interval '1 day 2 hours'::text", "1 day 02:00:00"),
    "TimeZone": ("Asia/Kolkata", "select timestamptz '2020-01-01 00:00+00'::text", "2020-01-01 00:00:00+00"),
    "extra_float_digits": ("0", "select (0.1::float8 + 0.2::float8)::text", "0.30000000000000004"),
    "bytea_output": ("escape", "select 'a'::bytea::text", r"\x61"),
    "search_path": ("public", "select 'public.t'::regclass::text", "public.t"),
    "quote_all_identifiers": ("on", "select 'public.t'::regclass::text", "public.t"),
    "standard_conforming_strings": ("off", r"select 'a\nb'", r"a\nb"),
}


def test_the_settings_of_a_role_do_not_leak_into_values(database, writer, new_role):
    source = new_role("leaky")
    writer.execute("create table public.t (id int)")
    for name, (value, _, _) in LEAKS.items():
        writer.execute(f"alter role {source.user} set {name} = '{value}'")

    with session.connect(source, what="test") as conn:
        rendered = {name: conn.execute(query).fetchone()[0] for name, (_, query, _) in LEAKS.items()}
    with arrow.connect_arrow(source, what="test", settings={}) as streaming:
        streamed = {name: streaming.ask(sql.SQL(query))[0][0] for name, (_, query, _) in LEAKS.items()}

    expected = {name: expected for name, (_, _, expected) in LEAKS.items()}
    assert rendered == expected
    assert streamed == expected


def test_every_pinned_setting_is_what_the_server_shows(conn):
    shown = {name: conn.execute(f"select current_setting('{name}')").fetchone()[0] for name in PINNED}

    assert shown == PINNED


def test_a_setting_that_the_server_does_not_take_stops_the_session(source, monkeypatch):
    monkeypatch.setitem(session.PINNED, "TimeZone", "utc")  # the server shows what it made of it

    with pytest.raises(SourceError, match="to take TimeZone = 'utc' for the session, got 'UTC' instead"):
        session.connect(source, what="test")


def test_limits_that_would_end_a_holder_of_a_snapshot_are_off_and_ours_are_on(writer, new_role):
    source = new_role("limited")
    for limit in ("idle_in_transaction_session_timeout", "idle_session_timeout", "statement_timeout", "lock_timeout"):
        writer.execute(f"alter role {source.user} set {limit} = '1s'")

    with session.connect(source, what="test", statement_timeout=90, lock_timeout=7) as conn:
        shown = conn.execute(
            "select current_setting('idle_in_transaction_session_timeout'), current_setting('idle_session_timeout'),"
            " current_setting('statement_timeout'), current_setting('lock_timeout'),"
            " current_setting('client_connection_check_interval')"
        ).fetchone()

    assert shown == ("0", "0", "90s", "7s", "5s")


def test_the_server_sees_the_name_of_the_pipeline_and_what_it_does(source, writer):
    with session.connect(source, what="shop:capture") as conn:
        name = writer.execute("select application_name from pg_stat_activity where pid = %s", (conn.info.backend_pid,))

        assert name.fetchone() == ("penstock:shop:capture",)


def test_a_read_that_a_policy_would_narrow_fails_instead_of_losing_rows(writer, new_role):
    source = new_role("narrowed")
    writer.execute("create table t (id int); alter table t enable row level security; insert into t values (1)")
    writer.execute(f"grant select on t to {source.user}")

    with (
        session.connect(source, what="test") as conn,
        pytest.raises(SourceError, match="row-level security") as caught,
        server_errors.translating(conn.place),
    ):
        conn.execute("select * from public.t")
    assert caught.value.slug == "source-auth"


def test_positions_go_to_the_server_and_come_back_as_positions(conn):
    there_and_back = conn.execute("select pg_typeof(%s)::text, %s", (Lsn(7), Lsn((1 << 63) + 5))).fetchone()

    assert there_and_back == ("pg_lsn", Lsn((1 << 63) + 5))
    assert isinstance(there_and_back[1], Lsn)


def test_the_digest_of_the_settings_changes_with_any_of_them(monkeypatch):
    before = session.pinned_digest()
    monkeypatch.setitem(session.PINNED, "DateStyle", "SQL, DMY")

    assert session.pinned_digest() != before
    assert len(before) == 16


def test_the_server_says_who_it_is(conn, database):
    server = server_info.read_server(conn)

    expected = conn.execute(
        "select system_identifier, current_setting('server_version_num')::int from pg_control_system()"
    )
    assert (server.system_identifier, server.version_num) == expected.fetchone()
    assert server.database == database.name
    assert server.major == database.server.major
    assert server.timeline == 1
    assert (server.wal_level, server.encoding, server.in_recovery) == ("logical", "UTF8", False)
    assert (server.max_slot_wal_keep_size, server.temp_file_limit, server.idle_slot_timeout) == (None, None, 0)


def test_the_horizon_bounds_every_transaction_before_the_flushed_position(conn, writer):
    writer.execute("create table t (id int)")
    xid = writer.execute("insert into t values (1) returning pg_current_xact_id()::text::bigint").fetchone()[0]
    writer.execute("insert into t values (2)")

    (before,) = conn.execute("select pg_current_wal_flush_lsn()").fetchone()

    end = server_info.position(conn)

    (after,) = conn.execute("select pg_current_wal_flush_lsn()").fetchone()
    assert before <= end.flushed <= after
    assert end.xid_horizon > xid
    assert end.time.tzinfo is not None


# Where the WAL ends: as far as it is flushed, and as far as it is written.


def test_a_command_that_was_committed_asynchronously_lies_below_the_end_of_the_wal(
    conn: SourceSession, writer: psycopg.Connection
) -> None:
    writer.execute("set synchronous_commit = off")
    for number in range(20):
        before = server_info.inserted(conn)
        writer.execute(f"create table t{number} (id int)")

        assert before < server_info.inserted(conn)
        assert server_info.flushed(conn) <= server_info.inserted(conn)
