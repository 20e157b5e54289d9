"""A role that may only connect writes logical messages: nothing stops, and no table is followed on his word."""

import json
from typing import Any

import psycopg
import pytest

from penstock.flow.capture import run as capture
from penstock.lsn import Lsn
from penstock.shapes.ddl_message import PREFIX, VERSION
from penstock.source import ddl_trigger, session
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin
from tests.source.test_told_proof import guest

STOPPING = [
    '{"version":4,"oid":1e400,"trigger":"","gone":true}',
    '{"version":5,"xid":"1","oid":1e400,"trigger":"","gone":true}',
    '{"version":5,"xid":"1","oid":1,"trigger":null,"count":400000000,"columns":[],"dropped":[],"file":1,"plain":true}',
    "not JSON",
    "[" * 100_000,
    "",
]


def emit(
    conn: psycopg.Connection[Any], content: str | bytes, *, transactional: bool = True, prefix: str = PREFIX
) -> None:
    body = content.encode() if isinstance(content, str) else content
    conn.execute("select pg_logical_emit_message(%s, %s, %s::bytea)", (transactional, prefix, body))


def here(env: PipelineEnv) -> Lsn:
    ((place,),) = env.sql("select pg_current_wal_flush_lsn()::text")
    return Lsn.parse(place)


@pytest.mark.parametrize("listens", [False, True])
def test_no_message_of_a_stranger_stops_capture(env16: PipelineEnv, listens: bool) -> None:
    env16.settings["source"] = {**env16.settings.get("source", {}), "ddl_trigger": listens}
    if listens:
        env16.sql(ddl_trigger.install_statement())
    begin(env16, "create table t (id int primary key)")
    for n in range(1, 3):
        with guest(env16.source) as conn:
            for text in STOPPING:
                for head in (b"", bytes(40)):
                    for transactional in (True, False):
                        for prefix in (PREFIX, "other", "x" * 9000, ""):
                            emit(conn, head + text.encode(), transactional=transactional, prefix=prefix)
            conn.execute("select pg_logical_emit_message(true, %s, repeat('x', 30000000))", (PREFIX,))
        env16.land(f"insert into t values ({n})")

    assert landed(env16, "t", "id") == at_source(env16, "t", "id")
    assert env16.paused() == {}
    if not listens:
        assert all(window.messages < 20 for window in env16.ctx.ledger.windows.all(env16.name)), "not even sent"


def forged(state: dict[str, Any]) -> bytes:
    """Return what a stranger can know of a state, in the form of the trigger's own message; what proves it he has to invent."""
    return bytes(40) + json.dumps(state).encode()


def known_to_all(env: PipelineEnv, table: str) -> dict[str, Any]:
    """Return the state of a table as anybody can put it together from the catalog, said to be left by a plain command."""
    ((oid, file, count, xmin, cmin, xid),) = env.sql(
        "select c.oid::bigint, c.relfilenode::bigint, c.relnatts::int, c.xmin::text::bigint, c.cmin::text::bigint,"
        f" pg_current_xact_id()::text from pg_class c where c.oid = '{table}'::regclass"
    )
    columns = env.sql(
        "select attnum::int, attname::text, atttypid::bigint, atttypmod::int, xmin::text::bigint from pg_attribute "
        f"where attrelid = '{table}'::regclass and attnum > 0 and not attisdropped order by attnum"
    )
    with session.connect(env.ctx.source, what="test") as conn:
        token = ddl_trigger.read_trigger(conn).token
    return {
        "version": VERSION, "trigger": token, "xid": xid, "oid": oid, "file": file, "written": [xmin, cmin], "plain": True,
        "unlogged": False, "count": count, "columns": [list(column) for column in columns], "dropped": [],
    }  # fmt: skip


def test_a_table_whose_values_a_command_has_changed_is_not_followed_on_a_strangers_word(env16: PipelineEnv) -> None:
    env16.sql("create schema s; create table s.a (id int primary key, v int); insert into s.a values (1, 1), (2, 2)")
    env16.settings["tables"] = {"include": ["s.*"]}
    env16.bootstrap(trigger=True)
    env16.follow()
    before = known_to_all(env16, "s.a")

    env16.sql("alter table s.a alter v type bigint using v * 10")
    now = known_to_all(env16, "s.a")
    with guest(env16.source) as conn:
        emit(conn, forged(before))
        for _ in range(50):
            emit(conn, "x" * 100_000, prefix="filler")
        end = here(env16)
        emit(conn, forged(now))
    capture.capture_window(env16.ctx, limit=end)
    env16.follow()

    assert set(env16.paused()) == {"a"}
    assert not env16.ctx.ledger.events.unannounced(env16.name, "schema-followed"), "no new type is told with old values"
