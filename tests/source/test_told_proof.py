"""Only what the event trigger's function wrote, in its own transaction, is proved to be its message; nobody else learns or guesses how."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
import pytest
from psycopg import sql

from penstock.shapes import ddl_message
from penstock.shapes.ddl_message import PREFIX
from penstock.shapes.known_shape import KnownShape
from penstock.source import ddl_trigger, server_info, session
from penstock.source.peek import Logical
from penstock.wire.messages import LogicalMessage
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.source.conftest import connection_to, decoded, window

SLOW = pytest.mark.slow
SLOT = "proves"


@pytest.fixture(scope="module")
def other_server(new_server: Callable[..., Server], binaries_of: Callable[[int], Binaries]) -> Callable[[int], Server]:
    return cache(lambda major: new_server(binaries_of(major), {"fsync": "off"}))


@pytest.fixture(params=[15, 16, *(pytest.param(major, marks=SLOW) for major in (14, 17, 18))])
def database(request: pytest.FixtureRequest, other_server: Callable[[int], Server]) -> Iterator[Database]:
    major = request.param
    server = request.getfixturevalue(f"postgres{major}") if major in (15, 16) else other_server(major)
    with server.temporary_database(f"proof{major}") as database:
        database.execute("create publication p; create table t (id int primary key, v int)")
        database.execute(f"select pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
        database.execute(ddl_trigger.install_statement())
        yield database


def contents(database: Database, logical: Logical = Logical.PROVED, **options: Any) -> list[bytes]:
    place = connection_to(database)
    with session.connect(place, what="test") as conn:
        upto = server_info.flushed(conn)
    messages = decoded(window(place, upto, slot=SLOT, logical=logical, **options))
    return [each.content for each in messages if isinstance(each, LogicalMessage)]


def heard(database: Database) -> list[list[str]]:
    said = [ddl_message.read_message(content).said for content in contents(database)]
    return [[name for name, _, _ in each.columns.values()] for each in said if isinstance(each, KnownShape)]


def everything_sent(database: Database) -> list[bytes]:
    """Return all messages of the trigger's prefix, as somebody with REPLICATION can read them."""
    rows = database.execute(
        f"select data from pg_logical_slot_peek_binary_changes('{SLOT}', null, null, "
        "'proto_version', '1', 'publication_names', 'p', 'messages', 'true')"
    )
    return [each.content for each in decoded(data for (data,) in rows) if isinstance(each, LogicalMessage)]


def emit(conn: psycopg.Connection[Any], content: bytes, *, transactional: bool = True, prefix: str = PREFIX) -> None:
    conn.execute("select pg_logical_emit_message(%s, %s, %s::bytea)", (transactional, prefix, content))


@contextmanager
def guest(database: Database, more: str = "") -> Iterator[psycopg.Connection[Any]]:
    """Open a session of a role that may connect, and what `more` grants it."""
    role = f"{database.name}_guest"
    database.execute(f"create role {role}; {more.format(role=role)}")
    try:
        with database.connect() as conn:
            conn.execute(f"set session authorization {role}".encode())
            yield conn
    finally:
        database.execute(f"drop owned by {role} cascade; drop role {role}")


def token(database: Database) -> str | None:
    with session.connect(connection_to(database), what="test") as conn:
        return ddl_trigger.read_trigger(conn).token


def test_what_the_trigger_wrote_is_proved_and_a_copy_of_it_only_in_its_transaction_and_place(
    database: Database,
) -> None:
    database.execute("alter table t add a int")
    (genuine,) = contents(database)
    assert everything_sent(database) == [genuine]

    with guest(database) as conn:
        for transactional in (True, False):
            emit(conn, genuine, transactional=transactional)
        for place in (0, 31, 32, 39, 40, 60, -1):
            changed = bytearray(genuine)
            changed[place] ^= 1
            emit(conn, bytes(changed))
        for content in (b"", bytes(32), bytes(40), genuine[:-1], genuine + b" ", genuine[32:], b"\xff" * 100):
            emit(conn, content)
        for prefix in (f"{PREFIX} ", PREFIX[:-1], PREFIX.upper()):
            emit(conn, genuine, prefix=prefix)
    database.execute("alter table t add b int")

    assert heard(database) == [["id", "v", "a"], ["id", "v", "a", "b"]]
    assert contents(database)[0] == genuine


def test_a_message_that_is_sent_again_in_its_own_transaction_stands_at_another_place(database: Database) -> None:
    """Whoever may read the WAL could do that; the reader takes each place once."""
    with database.connect(autocommit=False) as conn:
        conn.execute("alter table t add a int")
        conn.execute("alter table t add b int")
        conn.commit()
    places = [ddl_message.read_message(content).place for content in contents(database)]
    assert len(set(places)) == 2
    assert places == sorted(places)


def test_subtransactions_and_prepared_transactions_are_proved(database: Database) -> None:
    with database.connect(autocommit=False) as conn:
        conn.execute("alter table t add a int")
        conn.execute("savepoint s; alter table t add b int; release s")
        conn.execute("savepoint s; alter table t add c int; rollback to s")
        conn.execute("do $$ begin begin alter table t add d int; exception when others then null; end; end $$")
        conn.commit()

    assert [each[-1] for each in heard(database)] == ["a", "b", "d"]


def test_whoever_has_no_right_to_the_secret_neither_reads_nor_changes_it(database: Database) -> None:
    database.execute("alter default privileges grant all on tables to public")
    database.execute("alter default privileges grant all on functions to public")
    for again in (False, True):
        if again:
            database.execute(ddl_trigger.remove_statement())
            database.execute(ddl_trigger.install_statement())
        everything = "grant create on database {database} to {{role}}; grant create on schema public to {{role}}"
        with guest(database, everything.format(database=database.name)) as conn:
            for attempt in (
                "select * from penstock_ddl.secret",
                "select inner_key from penstock_ddl.secret",
                "refresh materialized view penstock_ddl.secret",
                "lock table penstock_ddl.secret",
                "create function penstock_ddl.wrote(xid, bytea, int) returns bool language sql as 'select true'",
                "create or replace function penstock_ddl.wrote(xid, bytea) returns bool language sql as 'select true'",
                "alter function penstock_ddl.wrote(xid, bytea) owner to current_user",
                "drop schema penstock_ddl cascade",
                "select penstock_ddl.report()",
                "create event trigger mine on ddl_command_end execute function penstock_ddl.report()",
                "grant select on penstock_ddl.secret to public",
            ):
                with pytest.raises(psycopg.errors.Error):
                    conn.execute(attempt.encode())
            assert conn.execute("select penstock_ddl.wrote('3', '\\x00')").fetchone() == (False,)
            shown = "select definition from pg_matviews where schemaname = 'penstock_ddl' union all select prosrc from pg_proc"
            assert not [text for (text,) in conn.execute(shown) if "\\x" in text and "penstock_ddl.secret" in text]
    assert token(database) is not None


def test_what_a_guest_makes_in_public_or_among_his_temporary_things_is_never_called(database: Database) -> None:
    """Names that the function uses, as functions, operators, tables and types of somebody else."""
    with guest(
        database, f"grant create on schema public to {{role}}; grant temp on database {database.name} to {{role}}"
    ) as conn:
        for schema in ("public", "pg_temp"):
            conn.execute(f"create function {schema}.stolen(bytea) returns bytea language plpgsql as "
                         "'begin perform count(*) from penstock_ddl.secret; raise exception ''stolen''; end'".encode())  # fmt: skip
            for name, kinds in (
                ("sha256", "bytea"), ("xid8send", "xid8"), ("pg_lsn_send", "pg_lsn"), ("int8send", "bigint"), ("substr", "bytea, int"),
            ):  # fmt: skip
                conn.execute(f"create function {schema}.{name}({kinds}) returns bytea language sql as "
                             f"$$select {schema}.stolen('')$$".encode())  # fmt: skip
            conn.execute(
                f"create function {schema}.joined(bytea, bytea) returns bytea language sql as $$select {schema}.stolen('')$$".encode()
            )
            conn.execute(
                f"create operator {schema}.|| (leftarg = bytea, rightarg = bytea, function = {schema}.joined)".encode()
            )
        conn.execute(
            "create temp table pg_class (oid oid); create temp table secret (inner_key bytea, outer_key bytea)"
        )
        conn.execute("set search_path = pg_temp, public, pg_catalog")
        conn.execute("create table public.mine (id int)")
        conn.execute("alter table public.mine add a int")

        assert heard(database) == [["id"], ["id", "a"]]


def test_a_limit_for_locks_of_a_session_makes_no_command_silent(database: Database) -> None:
    with database.connect(autocommit=False) as admin, database.connect() as conn:
        admin.execute("refresh materialized view penstock_ddl.secret")
        conn.execute("set lock_timeout = '1ms'; set statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("alter table t add a int")
        admin.rollback()
        conn.execute("set statement_timeout = 0; alter table t add b int")

    assert [each[-1] for each in heard(database)] == ["b"]


def test_a_new_secret_is_another_trigger_and_proves_nothing_of_before(database: Database) -> None:
    first = token(database)
    database.execute("alter table t add a int")
    database.execute(ddl_trigger.install_statement())
    assert token(database) == first
    database.execute("refresh materialized view penstock_ddl.secret")
    second = token(database)
    database.execute("alter table t add b int")

    assert None not in (first, second)
    assert first != second
    assert heard(database) == [["id", "v", "a", "b"]]
    assert [ddl_message.read_message(content).said.generation for content in contents(database)] == [second]


@pytest.mark.parametrize(
    "change",
    [
        "grant select on penstock_ddl.secret to public",
        "refresh materialized view penstock_ddl.secret with no data",
        "drop materialized view penstock_ddl.secret",
        "drop function penstock_ddl.wrote(xid, bytea)",
        "alter function penstock_ddl.wrote(xid, bytea) owner to {role}",
        "alter function penstock_ddl.wrote(xid, bytea) security invoker",
        "alter schema penstock_ddl owner to {role}",
        "revoke execute on function penstock_ddl.wrote(xid, bytea) from public; set role {role}",
    ],
)
def test_a_secret_or_function_that_others_have_a_hand_in_is_not_trusted_and_no_command_fails(
    database: Database, change: str
) -> None:
    with guest(database), database.connect() as admin:
        admin.execute(change.format(role=f"{database.name}_guest").encode())
        found = admin.execute(sql.SQL("select ({})").format(ddl_trigger._token())).fetchone()
        admin.execute("reset role; alter table t add a int")
        assert found == (None,)
        if "owner" in change:
            admin.execute(
                "alter function penstock_ddl.wrote(xid, bytea) owner to current_user; alter schema penstock_ddl owner to current_user"
            )
        admin.execute(ddl_trigger.install_statement().encode())
    if "invoker" not in change:
        assert token(database) is not None, "run again the statement mends it"


def run(
    server: Server, program: str, role: str, password: str, *words: str, text: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [str(server.binaries.program(program)), "-h", "127.0.0.1", "-p", str(server.port), "-U", role, *words]
    return subprocess.run(
        command, env={"PGPASSWORD": password, "LC_ALL": "C"}, input=text, text=True, check=True, capture_output=True
    )


@pytest.fixture
def restored(database: Database) -> Iterator[Database]:
    with database.server.temporary_database(f"{database.name}_again") as other:
        yield other


def test_who_dumps_the_database_needs_no_right_to_the_secret_and_a_restored_one_has_another(
    database: Database, restored: Database
) -> None:
    role, server = f"{database.name}_dumps", database.server
    database.execute(
        f"create role {role} login password 'x'; grant select on t to {role}; grant usage on schema public to {role}"
    )
    try:
        dumped = run(server, "pg_dump", role, "x", database.name).stdout
        run(
            server, "psql", "postgres", server.password, "-v", "ON_ERROR_STOP=1", "-X", "-d", restored.name, text=dumped
        )
    finally:
        for each in (restored, database):
            each.execute(f"drop owned by {role}")
        database.execute(f"drop role {role}")
    ((secret,),) = database.execute("select encode(inner_key, 'hex') from penstock_ddl.secret")

    assert secret not in dumped
    assert token(restored) not in (None, token(database))
    assert restored.execute("select encode(inner_key, 'hex') from penstock_ddl.secret") != [(secret,)]
