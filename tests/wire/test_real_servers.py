"""What PostgreSQL really sends, through both decoders: `source.peek()` fails where they differ."""

import random
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from penstock.contract.schema import NO_COLUMNS_FIELD
from penstock.errors import ProtocolError
from penstock.lsn import Lsn
from penstock.wire import messages as m
from tests.wire.conftest import Peek, Source
from tests.wire.rows import Row, batches, feed

LONG = "repeat(md5('x'), 100)"


def changes(peek: Peek, *fields: str) -> list[tuple[Any, ...]]:
    """Return these fields of every row; images as tuples of their values."""
    return [tuple(_plain(getattr(row, field)) for field in fields) for row in peek.rows]


def _plain(value: Any) -> Any:
    return tuple(value.values()) if isinstance(value, dict) else value


def tables(peek: Peek) -> list[str]:
    return [row.relation.name for row in peek.rows]


def test_null_the_empty_string_and_unchanged_toast_are_three_things(source: Source) -> None:
    source.execute("create table t (id int primary key, note text, body text)")
    source.execute("alter table t alter body set storage external")
    source.execute(f"insert into t values (1, null, {LONG})")
    source.execute("update t set note = ''")
    source.execute("update t set body = null")

    insert, toast, null = source.peek().rows

    assert insert.new == {"id": "1", "note": None, "body": source.execute(f"select {LONG}")[0][0]}
    assert (toast.new, toast.unchanged) == ({"id": "1", "note": "", "body": None}, ["body"])
    assert (null.new, null.unchanged) == ({"id": "1", "note": "", "body": None}, None)


@pytest.mark.parametrize(
    ("identity", "same_key", "moved", "deleted"),
    [
        ("default", (None, None), ("K", ("1", None, None)), ("K", ("2", None, None))),
        ("using index t_code", (None, None), (None, None), ("K", (None, "c", None))),
        ("full", ("O", ("1", "c", "a")), ("O", ("1", "c", "b")), ("O", ("2", "c", "b"))),
    ],
)
def test_old_images_follow_the_replica_identity(
    source: Source, identity: str, same_key: Any, moved: Any, deleted: Any
) -> None:
    source.execute("create table t (id int primary key, code text not null, note text)")
    source.execute("create unique index t_code on t (code)")
    source.execute(f"alter table t replica identity {identity}")
    source.execute("insert into t values (1, 'c', 'a')")
    source.execute("update t set note = 'b'")
    source.execute("update t set id = 2")
    source.execute("delete from t")

    peek = source.peek()

    assert [("I", None, None), ("U", *same_key), ("U", *moved), ("D", *deleted)] == changes(
        peek, "op", "old_kind", "old"
    )
    key = {"default": ["id"], "full": ["id", "code", "note"]}.get(identity, ["code"])
    assert key == [column.name for column in peek.rows[0].relation.columns if column.key]


def test_a_toasted_key_comes_in_the_old_image_though_it_did_not_change(source: Source) -> None:
    source.execute("create table t (id text primary key, n int, body text) with (toast_tuple_target = 128)")
    source.execute("alter table t alter id set storage external, alter body set storage external")
    source.execute("insert into t values (repeat('k', 500), 1, repeat('b', 3000))")
    source.execute("update t set n = 2")

    update = source.peek().rows[-1]

    assert (update.old_kind, update.old) == ("K", {"id": "k" * 500, "n": None, "body": None})
    assert (update.new, update.unchanged) == ({"id": None, "n": "2", "body": None}, ["id", "body"])


def test_under_identity_full_the_old_row_holds_what_the_new_one_leaves_out(source: Source) -> None:
    source.execute("create table t (n int, body text)")
    source.execute("alter table t alter body set storage external, replica identity full")
    source.execute("insert into t values (1, repeat('b', 5000))")
    source.execute("update t set n = 2")

    update = source.peek().rows[-1]

    assert (update.old_kind, update.old) == ("O", {"n": "1", "body": "b" * 5000})
    assert (update.new, update.unchanged) == ({"n": "2", "body": None}, ["body"])


def test_a_truncate_is_one_row_per_table_between_the_changes(source: Source) -> None:
    source.execute("create table a (id int primary key); create table b (id int primary key references a)")
    source.transaction("insert into a values (1)", "truncate a, b restart identity cascade", "insert into a values (2)")

    peek = source.peek()

    assert changes(peek, "op", "old") == [("I", None), ("T", None), ("T", None), ("I", None)]
    assert {"a", "b"} == {row.relation.name for row in peek.rows if row.op == "T"}
    assert [row.ordinal for row in peek.rows] == [0, 1, 2, 3]
    assert all(row.new is None for row in peek.rows if row.op == "T")


def test_what_was_rolled_back_to_a_savepoint_is_absent(source: Source) -> None:
    source.execute("create table t (id int primary key)")
    source.transaction(
        "insert into t values (1)",
        "savepoint a",
        "insert into t values (2)",
        "rollback to a",
        "savepoint b",
        "insert into t values (3)",
        "release b",
    )

    assert [new for (new,) in changes(source.peek(), "new")] == [("1",), ("3",)]


def test_columns_added_renamed_retyped_and_dropped_within_a_transaction_change_what_follows(source: Source) -> None:
    source.execute("create table t (id int primary key, a text)")
    source.transaction(
        "insert into t values (1, 'x')",
        "alter table t add b int default 7",
        "insert into t values (2, 'x')",
        "alter table t rename a to c",
        "insert into t values (3, 'x')",
        "alter table t drop b",
        "insert into t values (4, 'x')",
        "alter table t alter c type varchar(9)",
        "insert into t values (5, 'x')",
        "alter table t rename to u",
        "insert into u values (6, 'x')",
    )

    peek = source.peek()

    assert [(row.relation.name, list(row.new or {})) for row in peek.rows] == [
        ("t", ["id", "a"]),
        ("t", ["id", "a", "b"]),
        ("t", ["id", "c", "b"]),
        ("t", ["id", "c"]),
        ("t", ["id", "c"]),
        ("u", ["id", "c"]),
    ]
    assert [row.relation.columns[1].type_oid for row in peek.rows] == [25, 25, 25, 25, 1043, 1043]
    assert peek.rows[-1].relation.columns[1].typmod == 13
    assert len(peek.rows) == len(peek.blocks)
    assert len({row.relation.oid for row in peek.rows}) == 1


def test_a_table_created_again_under_the_same_name_is_another_relation(source: Source) -> None:
    source.execute("create table t (id int primary key)")
    source.execute("insert into t values (1)")
    source.transaction("drop table t", "create table t (id int primary key)", "insert into t values (2)")

    first, second = source.peek().rows

    assert first.relation.oid != second.relation.oid
    assert first.relation.name == second.relation.name


def test_a_relation_message_that_says_nothing_new_does_not_split_a_block(source: Source) -> None:
    source.execute("create table t (id int primary key, a text)")
    source.execute("insert into t values (1)")
    source.execute("analyze t")
    source.execute("insert into t values (2)")
    source.execute("create index on t (a)")
    source.execute("insert into t values (3)")

    peek = source.peek()

    assert sum(data[:1] == b"R" for data in peek.messages) > 1
    assert len(peek.blocks) == 1
    assert peek.blocks[0].counts.inserts == 3


@pytest.fixture
def with_origin(source: Source) -> Source:
    """One change of our own, one that came from `north` with a time of its own, one with a time beyond all times."""
    source.execute("create table t (id int primary key)")
    source.execute("insert into t values (1)")
    source.execute("select pg_replication_origin_create('north')")
    source.execute("select pg_replication_origin_session_setup('north')")
    for key, time in ((2, "2020-01-01"), (3, "infinity")):
        with source.connection.transaction():
            source.execute("select pg_replication_origin_xact_setup('0/ABCDEF', %s)", time)
            source.execute("insert into t values (%s)", key)
    source.execute("select pg_replication_origin_session_reset()")
    source.execute("select pg_replication_origin_drop('north')")
    return source


def test_a_row_names_the_origin_of_its_transaction_and_keeps_its_time(with_origin: Source) -> None:
    ours, theirs, timeless = with_origin.peek().rows

    assert (ours.origin, theirs.origin, timeless.origin) == (None, "north", "north")
    assert int(datetime(2020, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 == theirs.committed_at
    assert timeless.committed_at is None


def test_changes_of_a_skipped_origin_give_no_rows(with_origin: Source) -> None:
    peek = with_origin.peek(skip_origins=frozenset({"north"}))

    assert [new for (new,) in changes(peek, "new")] == [("1",)]
    assert (peek.totals.changes, peek.totals.transactions) == (1, 3)


def test_logical_messages_give_no_rows(source: Source) -> None:
    source.execute("create table t (id int primary key)")
    source.execute("begin; select pg_logical_emit_message(false, 'lost', 'x'); rollback")
    source.transaction(
        "select pg_logical_emit_message(false, 'early', 'x')",
        "insert into t values (1)",
        "select pg_logical_emit_message(true, 'mark', '\\x00ff'::bytea)",
    )
    source.execute("select pg_logical_emit_message(true, 'alone', '')")

    peek = source.peek()

    assert [row.op for row in peek.rows] == ["I"]
    logical = [each for each in source.decoded() if isinstance(each, m.LogicalMessage)]
    assert sorted(each.transactional for each in logical) == [False, False, True, True]
    assert b"\x00\xff" in [each.content for each in logical]


@pytest.mark.parametrize("via_root", [False, True])
def test_partitions_are_their_own_tables_unless_published_through_the_root(source: Source, via_root: bool) -> None:
    source.execute("create table p (id int primary key, n int) partition by list (id)")
    source.execute("create table p1 partition of p for values in (1); create table p2 (n int, id int not null)")
    source.execute("alter table p attach partition p2 for values in (2)")
    source.execute(f"alter publication pub set (publish_via_partition_root = {via_root})")
    source.execute("insert into p values (1, 10)")
    source.execute("update p set id = 2")
    source.execute("truncate p")

    peek = source.peek()

    names = ["p", "p", "p"] if via_root else ["p1", "p1", "p2"]
    assert names == tables(peek)[:3]
    assert [row.op for row in peek.rows[:3]] == ["I", "D", "I"]
    assert peek.rows[2].new == {"id": "2", "n": "10"}
    assert set(tables(peek)[3:]) == ({"p"} if via_root else {"p1", "p2"})


def test_a_thousand_tiny_transactions_keep_their_lsn_time_and_xid(source: Source) -> None:
    source.execute("create table t (id int primary key, xid bigint)")
    before = source.execute("select clock_timestamp()")[0][0]
    source.execute(
        "do $$ begin for i in 1..1000 loop"
        " insert into t values (i, pg_current_xact_id()::text::bigint); commit; end loop; end $$"
    )
    after = source.execute("select clock_timestamp()")[0][0]

    peek = source.peek()

    assert peek.totals.transactions == 1000
    assert [str(number) for number in range(1, 1001)] == [row.new["id"] for row in peek.rows if row.new]
    assert [row.new["xid"] for row in peek.rows if row.new] == [str(row.xid) for row in peek.rows]
    lsns = [row.commit_lsn for row in peek.rows]
    assert lsns == sorted(set(lsns))
    times = [datetime.fromtimestamp((row.committed_at or 0) / 1e6, UTC) for row in peek.rows]
    assert before <= times[0] <= times[-1] <= after
    assert lsns[-1] < Lsn.parse(source.execute("select pg_current_wal_flush_lsn()::text")[0][0])


def test_generated_columns_are_absent(source: Source) -> None:
    source.execute("create table t (id int primary key, twice int generated always as (id * 2) stored, n int)")
    source.execute("insert into t (id, n) values (1, 2)")

    (row,) = source.peek().rows

    assert row.new == {"id": "1", "n": "2"}


HOSTILE = ["select", "Mixed Case", 'qu"ote', "it's", "new\nline", "日本語", "%s {} $1", "x" * 63, "a.b", "\\"]


def test_hostile_names_come_through_as_they_are(source: Source) -> None:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    for name in HOSTILE:
        columns = ", ".join(f"{quoted(column)} text" for column in HOSTILE)
        source.execute(f"create schema {quoted(name)}")
        source.execute(f"create table {quoted(name)}.{quoted(name)} ({columns})")
        source.execute(f"insert into {quoted(name)}.{quoted(name)} default values")

    peek = source.peek()

    assert HOSTILE == [row.relation.namespace for row in peek.rows] == tables(peek)
    assert all(list(row.new or {}) == HOSTILE for row in peek.rows)


def test_domains_and_enums_are_named_by_type_messages(source: Source) -> None:
    source.execute("create schema s; create type s.mood as enum ('sad', 'ok')")
    source.execute("create domain s.age as int check (value >= 0)")
    source.execute("create table t (id int primary key, m s.mood, a s.age, many s.mood[])")
    source.execute("insert into t values (1, 'ok', 7, '{sad,ok}')")

    peek = source.peek()

    assert peek.rows[0].new == {"id": "1", "m": "ok", "a": "7", "many": "{sad,ok}"}
    types = [each for each in source.decoded() if isinstance(each, m.Type)]
    assert {("s", "mood"), ("pg_catalog", "int4"), ("s", "_mood")} == {(each.namespace, each.name) for each in types}
    assert [column.base for column in peek.blocks[0].relation.columns[1:]] == ["mood", "int4", "_mood"]


def test_a_table_of_1600_columns_and_one_of_none_come_through(source: Source) -> None:
    source.execute("create table none (); alter table none replica identity full; create table wide ()")
    for first in range(0, 1600, 400):
        source.execute("alter table wide " + ", ".join(f"add c{n} bool" for n in range(first, first + 400)))
    source.execute("insert into none default values; insert into wide (c0, c1599) values (true, false)")
    source.execute("delete from none")

    empty, wide, gone = source.peek().rows

    assert (empty.new, gone.old) == ({NO_COLUMNS_FIELD: None}, {NO_COLUMNS_FIELD: None})
    assert wide.new is not None
    assert len(wide.new) == 1600
    assert {name: text for name, text in wide.new.items() if text is not None} == {"c0": "t", "c1599": "f"}


def test_a_transaction_larger_than_a_batch_keeps_its_order(source: Source) -> None:
    source.execute("create table a (id int primary key); create table b (id int primary key)")
    source.transaction(
        "insert into a select generate_series(1, 500)",
        "insert into b select generate_series(501, 900)",
        "delete from a where id % 2 = 0",
    )

    peek = source.peek()

    assert [(block.counts.inserts, block.counts.deletes) for block in peek.blocks] == [(500, 250), (400, 0)]
    assert [str(number) for number in range(1, 901)] == [row.new["id"] for row in peek.rows if row.new]
    assert list(range(1150)) == [row.ordinal for row in peek.rows]


def test_applying_the_rows_of_a_random_load_gives_the_table(source: Source) -> None:
    dice = random.Random(7)
    source.execute("create table t (id int primary key, n int, body text)")
    source.execute("alter table t alter body set storage external")
    for _ in range(120):
        key, other = dice.randrange(12), dice.randrange(12)
        statement = dice.choice(
            [
                f"insert into t values ({key}, {other}, repeat('{other}', {dice.choice([1, 4000])})) on conflict do nothing",
                f"update t set n = {other} where id = {key}",
                f"update t set id = {other} where id = {key} and not exists (select from t where id = {other})",
                f"update t set id = -id where id in ({key}, {other})",
                f"delete from t where id = {key}",
                "truncate t" if dice.random() < 0.1 else "select 1",
            ]
        )
        source.execute(statement)

    table = applied(source.peek().rows)

    expected = source.execute("select id::text, n::text, body from t order by t.id::text")
    assert expected == sorted((row["id"], row["n"], row["body"]) for row in table.values())


def applied(rows: list[Row]) -> dict[str | None, dict[str, str | None]]:
    """Apply changes to an empty table, keyed by `id`."""
    table: dict[str | None, dict[str, str | None]] = {}
    for row in rows:
        key = (row.old or row.new or {}).get("id")
        before = {} if row.op == "T" else table.pop(key, {})
        if row.op == "T":
            table.clear()
        if row.new is not None:
            known = {name: text for name, text in row.new.items() if name not in (row.unchanged or [])}
            table[known["id"]] = before | known
    return table


# --- what a batch reader must not meet, and the scalar decoder knows --------------------------------------------


def kinds(messages: list[m.Message]) -> set[str]:
    return {type(each.message if isinstance(each, m.Streamed) else each).__name__ for each in messages}


def refused_by_the_batch_reader(messages: list[bytes]) -> str:
    with pytest.raises(ProtocolError) as refusal:
        feed(batches(messages))
    return refusal.value.message


def test_prepared_transactions_are_known_to_the_scalar_decoder_and_refused_in_batches(source: Source) -> None:
    source.execute("create table t (id int primary key)")
    source.create_slot("two", two_phase=True)
    for key, end in ((1, "commit"), (2, "rollback")):
        source.execute(f"begin; insert into t values ({key}); prepare transaction 'gid {key}'")
        source.execute(f"{end} prepared 'gid {key}'")

    decoded = source.decoded("two")

    assert [
        each.gid
        for each in decoded
        if isinstance(each, m.BeginPrepare | m.Prepare | m.CommitPrepared | m.RollbackPrepared)
    ] == ["gid 1", "gid 1", "gid 1", "gid 2", "gid 2", "gid 2"]
    assert {"BeginPrepare", "Relation", "Insert", "Prepare", "CommitPrepared", "RollbackPrepared"} == kinds(decoded)
    assert "message number 1 of the peek" in refused_by_the_batch_reader(source.messages("two"))
    assert "two_phase=false" in refused_by_the_batch_reader(source.messages("two"))


def test_streamed_transactions_are_known_to_the_scalar_decoder_and_refused_in_batches(
    source: Source, other: psycopg.Connection
) -> None:
    source.execute("create table t (id int primary key, body text)")
    source.execute("set logical_decoding_work_mem = '64kB'")
    other.execute("begin")
    for savepoint, keys in (("a", "1, 1000"), ("b", "1001, 2000")):
        other.execute(f"savepoint {savepoint}".encode())
        other.execute(f"insert into t select g, repeat('x', 200) from generate_series({keys}) as g".encode())
    other.execute("select pg_logical_emit_message(true, 'streamed', 'x')")
    other.execute("rollback to b; truncate t; commit")

    parallel = {"proto_version": "4", "streaming": "parallel"} if source.major >= 16 else {}
    on = source.decoded(proto_version="2", streaming="on")
    most = source.decoded(parallel=bool(parallel), **({"proto_version": "2", "streaming": "on"} | parallel))

    assert kinds(on) >= {"StreamStart", "StreamStop", "Insert", "StreamAbort", "StreamCommit"}
    (commit,) = (each for each in on if isinstance(each, m.StreamCommit))
    aborts = [each for each in on if isinstance(each, m.StreamAbort)]
    streamed = [each for each in on if isinstance(each, m.Streamed)]
    assert {commit.xid} == {each.xid for each in on if isinstance(each, m.StreamStart)} == {a.xid for a in aborts}
    assert {a.subxid for a in aborts} < {each.xid for each in streamed if isinstance(each.message, m.Insert)}
    assert [bool(parallel)] * len(aborts) == [a.abort_lsn is not None for a in most if isinstance(a, m.StreamAbort)]
    assert "two_phase=false" in refused_by_the_batch_reader(source.messages(proto_version="2", streaming="on"))
    assert [(row.op, row.relation.name) for row in source.peek().rows][-1:] == [("T", "t")]


def test_a_streamed_transaction_can_be_prepared(source: Source) -> None:
    source.execute("create table t (id int primary key, body text)")
    source.create_slot("two", two_phase=True)
    source.execute("set logical_decoding_work_mem = '64kB'")
    fill = "insert into t select g, repeat('x', 200) from generate_series(1, 1000) as g"
    source.execute(f"begin; {fill}; prepare transaction 'large'")
    source.execute("commit prepared 'large'")

    decoded = source.decoded("two", proto_version="3", streaming="on", two_phase="on")

    assert {"StreamStart", "StreamPrepare", "CommitPrepared"} < kinds(decoded)


def test_binary_values_are_known_to_the_scalar_decoder_and_refused_in_batches(source: Source) -> None:
    source.execute("create table t (id int primary key, note text, at timestamptz)")
    source.execute("insert into t values (258, 'é', '2000-01-01 00:00:00.000001+00')")

    (insert,) = (each for each in source.decoded(binary="true") if isinstance(each, m.Insert))

    assert (m.Binary(b"\0\0\1\2"), m.Binary("é".encode()), m.Binary(b"\0" * 7 + b"\1")) == insert.new
    assert "no binary" in refused_by_the_batch_reader(source.messages(binary="true"))
