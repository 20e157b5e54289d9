"""Whatever the source complains about gets its own name, and no message holds a secret or a row's value."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from penstock.conditions import DIRECTIVES
from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.source import arrow, server_errors, session
from penstock.source.server_errors import translate, translating
from stack import ports
from stack.servers.postgres import Server

PLACE = 'db:5432, database "shop", role "reader"'


def failing(source: Connection, **changes: object) -> SourceError:
    wrong = Connection(**{**vars(source), **changes})
    with pytest.raises(SourceError) as caught:
        session.connect(wrong, what="test")
    return caught.value


def failing_arrow(source: Connection, **changes: object) -> SourceError:
    wrong = Connection(**{**vars(source), **changes})
    with pytest.raises(SourceError) as caught, arrow.connect_arrow(wrong, what="test", settings={}):
        pass
    return caught.value


@pytest.fixture(params=[failing, failing_arrow], ids=["psycopg", "adbc"])
def failure(request):
    return request.param


@pytest.fixture
def anywhere(postgres16: Server) -> Connection:
    """A server that answers; what goes wrong before there is a session is the same on all."""
    return Connection("source", "127.0.0.1", postgres16.port, "postgres", postgres16.password, "postgres")


def test_a_wrong_password_is_named_and_not_shown(anywhere, failure):
    error = failure(anywhere, password="s3cret-but-wrong")

    assert error.slug == "source-auth"
    assert "password authentication failed" in error.message
    assert anywhere.address in error.message
    assert "s3cret" not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_a_refused_connection_is_named_with_its_address(anywhere, failure):
    error = failure(anywhere, port=ports.choose())

    assert error.slug == "source-unreachable"
    assert "Connection refused" in error.message
    assert anywhere.password not in str(error)


def test_a_host_that_does_not_exist_is_named(anywhere, failure):
    error = failure(anywhere, host="no.such.host.invalid")

    assert error.slug == "source-unreachable"
    assert "no.such.host.invalid" in error.message


def test_a_database_that_does_not_exist_is_the_operators_to_fix(anywhere, failure):
    error = failure(anywhere, database="nowhere")

    assert (error.slug, error.directive.value) == ("source-auth", "page")
    assert 'database "nowhere" does not exist' in error.message


def test_a_server_without_tls_is_not_talked_to_in_the_clear_when_tls_is_asked_for(anywhere, failure):
    error = failure(anywhere, options={"sslmode": "require"})

    assert error.slug == "source-unreachable"
    assert "server does not support SSL" in error.message


def test_a_session_that_is_ended_counts_as_unreachable(source, writer):
    with session.connect(source, what="test") as conn:
        writer.execute("select pg_terminate_backend(%s, 5000)", (conn.info.backend_pid,))
        for _ in range(2):
            with pytest.raises(SourceError) as caught:
                conn.rows("server_info/horizon")
            assert caught.value.slug == "source-unreachable"


def test_a_missing_privilege_is_named(new_role, writer):
    writer.execute("create table secrets (id int); create schema s; create table s.t (id int)")
    with session.connect(new_role("stranger"), what="test") as conn:
        for table in ("public.secrets", "s.t"):
            with pytest.raises(SourceError, match="permission denied for") as caught, translating(conn.place):
                conn.execute(f"select * from {table}")
            assert caught.value.slug == "source-auth"


@contextmanager
def holding(writer: psycopg.Connection, statement: str) -> Iterator[None]:
    with writer.transaction():
        writer.execute(statement)
        yield


def test_a_statement_or_a_lock_that_takes_too_long_may_be_tried_again(source, writer):
    writer.execute("create table t (id int)")
    with (
        session.connect(source, what="test", statement_timeout=1) as conn,
        pytest.raises(SourceError, match="statement_timeout") as slow,
        translating(conn.place),
    ):
        conn.execute("select pg_sleep(60)")
    with (
        session.connect(source, what="test", lock_timeout=1) as conn,
        holding(writer, "lock table t"),
        pytest.raises(SourceError, match="lock_timeout") as locked,
        translating(conn.place),
    ):
        conn.execute("select * from public.t")

    assert [slow.value.slug, locked.value.slug] == ["source-timeout", "source-timeout"]
    assert slow.value.directive.value == "retry"


QUOTING_STATEMENTS = {
    "data": "select 'the secret value'::int",
    "constraint": "insert into public.t values (1, 'the secret value'), (1, 'the secret value')",
    "length": "insert into public.u values ('the secret value')",
    "user code": "do $$ begin raise exception 'the secret value'; end $$",
}


def test_no_message_holds_a_value_of_a_row(conn):
    conn.execute("create table public.t (id int unique, v text); create table public.u (v varchar(3))")

    for statement in QUOTING_STATEMENTS.values():
        with pytest.raises(SourceError) as caught, translating(conn.place):
            conn.execute(statement)
        assert "the secret value" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.slug == "source-error"


class Complaint(psycopg.Error):
    """What a server of some version says; the real ones above show that the two are read alike."""

    def __init__(self, sqlstate: str | None, text: str) -> None:
        super().__init__(f"{text}\nDETAIL:  Key (id)=(42) of the secret row\nCONTEXT:  the secret row")
        self.sqlstate = sqlstate


SAID = [
    ("42704", 'replication slot "s" does not exist', "slot-missing"),
    ("42704", 'publication "p" does not exist', "publication-missing"),
    ("55006", 'replication slot "s" is active for PID 4711', "slot-in-use"),
    ("55000", 'can no longer get changes from replication slot "s"', "slot-lost"),  # 14 to 17
    ("55000", 'can no longer access replication slot "s"', "slot-lost"),  # 18
    ("55000", 'replication slot "s" cannot be advanced', "slot-lost"),
    ("58P01", "requested WAL segment 000000010000000000000001 has already been removed", "slot-lost"),
    ("55000", "cannot advance replication slot to 0/1, minimum is 0/2", "slot-ahead"),
    ("42710", 'replication slot "s" already exists', "slot-exists"),
    ("53400", "all replication slots are in use", "no-free-slot"),
    ("53400", "temporary file size exceeds temp_file_limit (1024kB)", "decoding-limit"),
    ("55000", 'logical decoding requires "wal_level" >= "logical"', "preflight-failed"),  # 17
    ("55000", "logical decoding requires wal_level >= logical", "preflight-failed"),
    ("22023", 'invalid snapshot identifier: "00000003-0000001B-1"', "snapshot-gone"),
    ("42704", 'snapshot "00000003-0000001B-1" does not exist', "snapshot-gone"),
    ("55000", "could not import the requested snapshot", "snapshot-gone"),
    ("42501", "must be superuser or replication role to use replication slots", "source-auth"),
    ("42501", "permission denied to use replication slots", "source-auth"),  # 16
    ("28000", 'role "u" is not permitted to log in', "source-auth"),
    ("57014", "canceling statement due to statement timeout", "source-timeout"),
    ("55P03", "canceling statement due to lock timeout", "source-timeout"),
    ("57P01", "terminating connection due to administrator command", "source-unreachable"),
    ("57P03", "the database system is starting up", "source-unreachable"),
    ("53300", "sorry, too many clients already", "source-unreachable"),
    ("25P03", "terminating connection due to idle-in-transaction timeout", "source-unreachable"),
    ("58P01", 'could not open file "pg_replslot/s/xid-7-lsn-0-1.spill": No such file or directory', "source-error"),
    ("55000", 'replication slot "s" was not created in this database', "slot-unusable"),
    ("55000", "cannot use physical replication slot for logical decoding", "slot-unusable"),
    ("55000", 'cannot use replication slot "s" for logical decoding', "slot-unusable"),  # 17: a synchronised slot
    ("0A000", "logical decoding cannot be used while in recovery", "preflight-failed"),  # 14, 15
    ("55000", 'logical decoding on standby requires "wal_level" >= "logical" on the primary', "preflight-failed"),
    ("25001", "cannot create logical replication slot in transaction that has performed writes", "source-error"),
    ("53300", 'number of requested standby connections exceeds "max_wal_senders" (currently 10)', "no-free-slot"),
    ("53200", "out of memory", "source-out-of-memory"),
    ("XX000", "invalid memory alloc request size 1073741824", "decoding-limit"),
    ("54000", "too much output for sql interface", "decoding-limit"),
    ("XX001", "invalid page in block 7 of relation base/5/16384", "source-corrupt"),
    ("XX002", 'index "i" contains unexpected zero page at block 1', "source-corrupt"),
    ("XX001", "missing chunk number 0 for toast value 16390 in pg_toast_16384", "source-corrupt"),
    ("XX000", "unexpected chunk number 4 (expected 3) for toast value 16390", "source-corrupt"),
    ("58P01", 'could not open file "base/5/16384": No such file or directory', "source-corrupt"),
    ("58P01", "could not access status of transaction 4711", "source-corrupt"),
    ("58030", 'could not read file "base/5/16384": Input/output error', "source-corrupt"),
    ("XX000", "incorrect resource manager data checksum in record at 0/1A2B3C", "source-corrupt"),  # 14
    ("XX000", "could not find record for logical decoding: invalid record length at 0/1A2B3C", "source-corrupt"),
    ("XX000", "record with incorrect prev-link 0/0 at 0/1A2B3C", "source-corrupt"),
    ("XX000", "invalid magic number 0000 in log segment 000000010000000000000001, offset 0", "source-corrupt"),
    (
        "XX000",
        "could not find logical decoding starting point: there is no contrecord flag at 0/1A2B",
        "source-corrupt",
    ),
    ("XX000", "could not find record while advancing replication slot: invalid info bits 0001", "source-corrupt"),
    ("XX000", "could not find record for logical decoding: out of memory while reading", "source-out-of-memory"),
    ("53100", "could not extend file: No space left on device", "source-disk-full"),
    ("40001", "canceling statement due to conflict with recovery", "recovery-conflict"),
    ("57P04", "terminating connection due to conflict with recovery", "recovery-conflict"),
    ("XX000", "unrecognized pgoutput option: origin", "source-error"),
    (
        "42501",
        'library "pgoutput" may not be used as an output plugin',
        "preflight-failed",
    ),  # 15.19, 16.15, 17.11, 18.6
    (None, 'connection to server at "h", port 1 failed: FATAL:  role "u" does not exist', "source-auth"),
    (None, 'connection to server at "h", port 1 failed: FATAL:  no pg_hba.conf entry for host', "source-auth"),
    (None, 'connection to server at "h", port 1 failed: FATAL:  permission denied to start WAL sender', "source-auth"),
]


@pytest.mark.parametrize(("state", "text", "slug"), SAID)
def test_what_the_versions_say_is_understood_and_details_are_dropped(state, text, slug):
    error = translate(Complaint(state, text), PLACE)

    assert error.slug == slug
    assert text.split("FATAL:  ")[-1] in error.message
    assert PLACE in error.message
    assert "secret" not in error.message


def test_an_unknown_complaint_without_a_state_is_not_repeated():
    error = translate(Complaint(None, "the secret value is odd"), PLACE)

    assert error.slug == "source-error"
    assert "secret" not in error.message


def test_every_rule_names_a_kind_of_error():
    assert {rule.slug for rule in server_errors.RULES} <= set(DIRECTIVES)
