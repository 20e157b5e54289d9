"""The event trigger writes what each command of DDL made of a table into the WAL, for readers of any slot of the database."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from penstock.shapes import ddl_message
from penstock.shapes.ddl_message import PREFIX
from penstock.shapes.known_shape import FileBefore, KnownShape
from penstock.source import ddl_trigger, session
from penstock.wire.messages import LogicalMessage
from penstock.wire.pgoutput import Decoder
from stack.servers.postgres import Database
from tests.source.conftest import connection_to


class Listener:
    """A slot that reads what is told, from the beginning at each time."""

    def __init__(self, database: Database) -> None:
        self.database, self.slot = database, f"hears_{database.name}"
        database.execute("create publication p")
        database.execute(f"select pg_create_logical_replication_slot('{self.slot}', 'pgoutput')")

    def contents(self) -> list[bytes]:
        peek = (
            f"select data from pg_logical_slot_peek_binary_changes('{self.slot}', null, null, "
            "'proto_version', '1', 'publication_names', 'p', 'messages', 'true')"
        )
        decoder = Decoder()
        messages = [decoder.decode(data) for (data,) in self.database.execute(peek)]
        return [each.content for each in messages if isinstance(each, LogicalMessage) and each.prefix == PREFIX]

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(content[40:]) for content in self.contents()]

    def states(self) -> list[KnownShape]:
        read = [ddl_message.read_message(content).said for content in self.contents()]
        return [state for state in read if isinstance(state, KnownShape)]

    def files(self) -> list[FileBefore]:
        read = [ddl_message.read_message(content).said for content in self.contents()]
        return [file for file in read if isinstance(file, FileBefore)]


@pytest.fixture
def database(database16: Database) -> Database:
    """All but the first test run on one version; scenarios do the rest."""
    return database16


@pytest.fixture
def listener(database: Database) -> Iterator[Listener]:
    listener = Listener(database)
    database.execute(ddl_trigger.install_statement())
    yield listener
    database.execute(ddl_trigger.remove_statement())


def names(state: KnownShape) -> dict[int, str]:
    return {attnum: name for attnum, (name, _, _) in state.columns.items()}


def test_each_command_tells_what_the_table_is_then(database: Database, listener: Listener) -> None:
    database.execute("create table t (id int primary key, a text)")
    database.execute("alter table t add b varchar(20), drop column a")
    database.execute("alter table t rename b to a")
    database.execute("insert into t values (1, 'secret')")
    database.execute("drop table t")

    *altered, dropped = listener.states()
    assert [names(state) for state in altered] == [
        {1: "id", 2: "a"},
        {1: "id", 3: "b"},
        {1: "id", 3: "b"},
        {1: "id", 3: "a"},
    ]
    assert [list(state.dropped) for state in altered] == [[], [2], [2], [2]]
    assert altered[1].dropped[2] == altered[1].xid & 0xFFFFFFFF
    assert altered[-1].columns[3][1:] == (1043, 24)
    assert dropped.gone
    first = listener.told()[0]
    assert (first["tag"], first["schema"], first["name"], first["kind"]) == ("CREATE TABLE", "public", "t", "r")
    assert (first["identity"], first["key"]) == ("d", [1])
    assert first["file"] == first["oid"]
    assert "secret" not in json.dumps(listener.told())


PLAIN = [
    "alter table t alter a type bigint",
    "ALTER  TABLE\tt\n alter a type bigint ;\n ;",
    "-- a migration's head\n\n/* and more */ alter table t alter a type bigint",
    "alter table t alter a type bigint, add x int default 5, alter b type text /* at the end */",
    "alter table only t rename a to c",
]
NOT_PLAIN = [
    "alter table t alter a type bigint using a + 1",
    "alter table t alter a type bigint uSiNg(a+1)",
    "alter table t alter a type bigint -- using",
    "alter table t alter a type bigint; alter table t alter b type text",
    "select 1; alter table t alter a type bigint",
    "alter/**/table t alter a type bigint",
    "/* /* */ */ alter table t alter a type bigint",
    "do 'begin alter table t alter a type bigint; end'",
    "do $$ begin execute 'alter table t alter a type bigint'; end $$",
    "select change_type()",
    "alter table other add x int default calls()",
    "alter table other alter a type bigint",
    "drop type part cascade",
]
MADE = """
create table t (id int primary key, a int, b varchar(3), p part);
create function change_type() returns void language plpgsql as 'begin alter table t alter a type bigint; end';
create function calls() returns int language sql volatile as 'select change_type(); select 1';
create table other (a int); insert into other values (1)
"""
NESTED = """
create function nested() returns event_trigger language plpgsql as $f$
begin
  if current_query() like '%other alter%' then
    if not exists (select from pg_attribute where attrelid = 't'::regclass and atttypid = 'int8'::regtype) then
      alter table t alter a type bigint using a + 1;
    end if;
  end if;
end $f$;
create event trigger a_first on ddl_command_end when tag in ('ALTER TABLE') execute function nested();
"""


def test_a_command_is_plain_if_a_client_sent_it_alone_and_without_using(database: Database, listener: Listener) -> None:
    commands: dict[int, str] = {}
    for command in [*PLAIN, *NOT_PLAIN]:
        database.execute("create type part as (x int)")
        database.execute(MADE)
        ((oid,),) = database.execute("select 't'::regclass::oid::bigint")
        commands[oid] = command
        database.execute(NESTED)
        database.execute(command)
        database.execute(
            "drop table t, other; drop function nested cascade; drop function calls; drop function change_type"
        )
        database.execute("drop type if exists part")
    told = {
        oid: [
            each["plain"]
            for each in listener.told()
            if each["oid"] == oid and each["tag"] not in ("CREATE TABLE", "DROP TABLE")
        ]
        for oid in commands
    }

    assert all(told.values())
    assert {commands[oid] for oid, plain in told.items() if all(plain)} == set(PLAIN)
    assert {commands[oid] for oid, plain in told.items() if not any(plain)} == set(NOT_PLAIN)


def test_what_is_rolled_back_is_never_told(database: Database, listener: Listener) -> None:
    database.execute("create table t (id int primary key, a text)")
    with database.connect(autocommit=False) as conn:
        conn.execute("alter table t rename a to b")
        conn.rollback()
        conn.execute("alter table t add c int")
        conn.execute("savepoint s")
        conn.execute("alter table t drop column a")
        conn.execute("rollback to savepoint s")
        conn.execute("alter table t rename c to d")
        conn.commit()

    assert [names(state) for state in listener.states()] == [
        {1: "id", 2: "a"},
        {1: "id", 2: "a", 3: "c"},
        {1: "id", 2: "a", 3: "d"},
    ]


def test_columns_that_go_with_something_else_are_told(database: Database, listener: Listener) -> None:
    database.execute("create type mood as enum ('sad'); create table t (id int primary key, m mood, note text)")
    database.execute("drop type mood cascade")
    database.execute("create type pair as (a int, b int); create table typed of pair")
    database.execute("alter type pair add attribute c int cascade")
    database.execute("create table root (id int) partition by range (id)")
    database.execute("create table leaf partition of root for values from (0) to (10)")
    before = len(listener.states())
    database.execute("alter table root add x int")

    states = listener.states()
    by_name = {told["oid"]: told["name"] for told in listener.told()}
    last = {by_name[state.oid]: names(state) for state in states}
    assert last["t"] == {1: "id", 3: "note"}
    assert last["typed"] == {1: "a", 2: "b", 3: "c"}
    assert last["root"] == last["leaf"] == {1: "id", 2: "x"}
    assert sorted(by_name[state.oid] for state in states[before:]) == ["leaf", "root"]


def test_partitions_are_told_of_only_where_they_are_altered(database: Database, listener: Listener) -> None:
    database.execute("create table root (id int) partition by range (id)")
    for n in range(3):
        database.execute(f"create table leaf_{n} partition of root for values from ({n}) to ({n + 1})")
    before = len(listener.told())
    database.execute("create table other (id int); alter table root attach partition other for values from (7) to (8)")

    assert [told["name"] for told in listener.told()[before:]] == ["other", "root"]


def test_a_partitions_file_is_told_before_it_is_rewritten(database: Database, listener: Listener) -> None:
    database.execute("create table root (a int, k int) partition by range (k); create table other (a int)")
    database.execute("create table leaf partition of root for values from (0) to (10); insert into root values (1, 1)")
    database.execute("create table void partition of root for values from (10) to (20)")
    file = "select relfilenode::bigint from pg_class where relname = 'leaf'"
    ((before,),) = database.execute(file)
    told = len(listener.contents())
    database.execute("alter table root alter a type bigint; alter table other alter a type bigint")
    ((after,),) = database.execute(file)

    (full, empty), states = (
        listener.files(),
        [ddl_message.read_message(content).said for content in listener.contents()[told:]],
    )
    assert (full.file, full.empty, empty.file, empty.empty) == (before, False, empty.oid, True)
    told_after = next(each for each in listener.states()[::-1] if each.oid == full.oid)
    assert states.index(full) < states.index(told_after)
    assert (told_after.file, told_after.xid, told_after.generation) == (after, full.xid, full.generation)
    writers = "select xmin::text::bigint, cmin::text::bigint from leaf"
    assert database.execute(writers) == [told_after.written], "the rewrite wrote the rows and the table's catalog row"


def test_temporary_tables_and_what_is_no_table_are_not_told(database: Database, listener: Listener) -> None:
    database.execute("create temporary table t (id int); alter table t add a int; drop table t")
    database.execute(
        "create function f() returns int language sql as 'select 1'; create view v as select 1 as one; drop view v"
    )
    database.execute(
        "create schema s; create type e as enum ('a'); comment on schema s is 'x'; grant usage on schema s to public"
    )

    assert listener.told() == []


def test_a_table_of_1600_columns_and_hostile_names_are_told(database: Database, listener: Listener) -> None:
    hostile = "a\"'\\\n\t$report$ é日 "
    columns = ", ".join(f'"{"é" * 29}{n}" int' for n in range(1599))
    database.execute('create schema "s p""x"')
    quoted = '"' + hostile.replace('"', '""') + '"'
    database.execute(f'create table "s p""x".{quoted} ({quoted} int primary key, {columns})')

    (state,) = listener.states()
    (told,) = listener.told()
    assert (told["schema"], told["name"]) == ('s p"x', hostile)
    assert state.columns[1] == (hostile, 23, -1)
    assert len(state.columns) == 1600


def test_nobody_can_bring_the_trigger_to_fail_a_command_or_to_run_something_else(
    database: Database, listener: Listener
) -> None:
    role = f"{database.name}_mallory"
    with database.connect() as admin:
        admin.execute(
            f"create role {role}; grant create on schema public to {role}; grant create on database {database.name} to {role}"
        )
        admin.execute("revoke execute on function pg_logical_emit_message(boolean, text, bytea) from public")
        try:
            admin.execute(f"set role {role}")
            admin.execute(
                "create function public.convert_to(text, name) returns bytea language sql as 'select null::bytea'"
            )
            admin.execute("create table public.pg_attribute (attrelid oid); set search_path = public, pg_catalog")
            admin.execute("create table t (id int)")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                admin.execute("drop schema penstock_ddl cascade")
        finally:
            admin.execute("reset role; reset search_path")
            admin.execute("grant execute on function pg_logical_emit_message(boolean, text, bytea) to public")
            admin.execute(f"drop owned by {role} cascade; drop role {role}")

    assert [told["name"] for told in listener.told() if "name" in told] == ["pg_attribute", "t"]


def test_what_cannot_be_found_out_is_said_to_be_missing(database: Database, listener: Listener) -> None:
    statement = ddl_trigger.install_statement().replace("'count', c.relnatts", "'count', 1 / (c.relnatts - c.relnatts)")
    database.execute(statement)
    database.execute("create table t (id int)")

    told = listener.told()[-1]
    assert told == {"version": ddl_message.VERSION, "tag": "CREATE TABLE", "missing": "22012"}
    assert ddl_message.read_message(listener.contents()[-1]).said is None


def test_installed_again_it_stays_as_it_is_and_whatever_is_altered_shows(
    database: Database, listener: Listener
) -> None:
    def found() -> ddl_trigger.DdlTrigger:
        with session.connect(connection_to(database), what="test") as conn:
            return ddl_trigger.read_trigger(conn)

    first = found()
    assert first.condition == "installed"
    database.execute(ddl_trigger.install_statement())
    assert found() == first

    database.execute("alter event trigger penstock_ddl_drop disable")
    assert found().condition == "disabled"
    database.execute(ddl_trigger.install_statement())
    assert found().condition == "installed"
    assert found().token != first.token
    database.execute("alter event trigger penstock_ddl_end enable")
    assert found().condition == "disabled", "not in sessions with session_replication_role = replica"
    database.execute("drop event trigger penstock_ddl_end")
    assert found().condition == "disabled"
    database.execute(ddl_trigger.install_statement())
    assert found().condition == "installed"
    database.execute(ddl_trigger.install_statement().replace(f"version {ddl_message.VERSION}", "version 0"))
    assert found().condition == "old"
    database.execute(ddl_trigger.remove_statement())
    assert found().condition == "missing"
    database.execute(ddl_trigger.remove_statement())


def test_a_session_that_plays_a_replica_is_heard_too(database: Database, listener: Listener) -> None:
    database.execute("set session_replication_role = replica; create table t (id int)")

    assert [told["name"] for told in listener.told()] == ["t"]


def test_the_least_privileged_role_sees_whether_it_is_there(
    database: Database, listener: Listener, new_role: Any
) -> None:
    with session.connect(new_role("reader"), what="test") as conn:
        assert ddl_trigger.read_trigger(conn).condition == "installed"


def test_readers_of_two_slots_hear_the_same(database: Database, listener: Listener) -> None:
    database.execute("select pg_create_logical_replication_slot('two_' || current_database(), 'pgoutput')")
    database.execute("create table t (id int); alter table t add a text")
    heard = listener.contents()
    listener.slot = f"two_{database.name}"

    assert len(heard) == 2
    assert listener.contents() == heard


def test_another_database_is_not_concerned(database: Database, listener: Listener) -> None:
    with database.server.temporary_database(f"{database.name}_other") as other:
        other.execute("create table t (id int)")
        with session.connect(connection_to(other), what="test") as conn:
            assert ddl_trigger.read_trigger(conn).condition == "missing"

    assert listener.told() == []


def test_a_command_without_rights_to_install_leaves_nothing(database: Database, new_role: Any) -> None:
    place = new_role("user")
    with session.connect(place, what="test") as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute(ddl_trigger.install_statement().encode())

    assert database.execute("select from pg_namespace where nspname = 'penstock_ddl'") == []
