"""Keys that the server enforces late, at the end of a statement or of the transaction: in between two rows may have one key.

The server itself decides what may be committed; what it did is what the lake holds.
"""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from stack.servers.postgres import Database
from tests.engine.followed import Followed

PLACED = "(list int not null, pos int not null, code int not null, v text"
LATE, AT_ONCE = "deferrable initially deferred", "deferrable initially immediate"
WHOLE = {  # rows are told by all that is in them
    "shifted": f"create table shifted {PLACED}, primary key (pos) {AT_ONCE})",
    "late": f"create table late {PLACED}, primary key (pos) {LATE})",
    "ordered": f"create table ordered {PLACED}, primary key (list, pos) {AT_ONCE})",
    "parted": f"create table parted {PLACED}, primary key (list, pos) {LATE}) partition by list (list); "
    "create table parted_0 partition of parted for values in (0, 1); create table parted_1 partition of parted default",
    "attached": f"create table attached {PLACED}, primary key (list, pos)) partition by list (list); "
    f"create table attached_0 {PLACED}, primary key (list, pos) {AT_ONCE}); "
    "alter table attached attach partition attached_0 for values in (0, 1); "
    "create table attached_1 partition of attached default",
}
KEYED = {  # an index that is enforced at once tells rows apart
    "plain": f"create table plain {PLACED}, primary key (list, pos))",
    "indexed": f"create table indexed {PLACED}, primary key (list, pos) {LATE}); create unique index by_code on indexed (code)",
}
COPIED = "insert into {t} select 0, i, -i, 'copied' from generate_series(1, 5) i"


@dataclass
class Histories:
    """Make random transactions over a table of ordered lists; the server refuses some of them."""

    random: random.Random
    conn: psycopg.Connection
    codes: int = 0

    def transaction(self, table: str, lists: Sequence[int]) -> None:
        with suppress(psycopg.errors.UniqueViolation), self.conn.transaction():
            if self.random.random() < 0.6:
                self.conn.execute("set constraints all deferred")
            for _ in range(self.random.choice((1, 1, 2, 4))):
                self.conn.execute(self._statement(table, self.random.choice(lists)).encode())

    def _statement(self, table: str, at: int) -> str:
        first, second = sorted(self.random.sample(range(1, 9), 2))
        step, word = self.random.choice((-2, -1, 1, 3)), self.random.choice(("null", "'a'", "'b'", "repeat('x', 3000)"))
        self.codes += 1
        code = self.codes if table == "indexed" else self.random.choice((1, 2))
        oldest = f"select min(ctid) from {table} where list = {at} and pos = {first} and tableoid = "
        oldest += f"(select min(tableoid) from {table} where list = {at} and pos = {first})"
        return self.random.choice((
            f"insert into {table} values ({at}, {first}, {code}, {word})",
            f"insert into {table} values ({at}, {first}, {code}, {word}); delete from {table} where ctid = ({oldest}) "
            f"and list = {at} and pos = {first}",
            f"update {table} set pos = pos + {step} where list = {at}",
            f"update {table} set pos = pos + {step} where list = {at} and pos >= {first}",
            f"update {table} set pos = {first} + {second} - pos where list = {at} and pos in ({first}, {second})",
            f"update {table} set pos = 9 - pos where list = {at}",
            f"update {table} set v = {word} where list = {at} and pos <= {first}",
            f"update {table} set list = 1 - list where list < 2 and pos = {second}",
            f"delete from {table} where list = {at} and pos = {first}",
        ))  # fmt: skip


def made(followed: Followed) -> None:
    """Make the tables, with rows that a copy brings."""
    followed.writer.execute("; ".join([*WHOLE.values(), *KEYED.values()]).encode())
    full = ["parted_0", "parted_1", "attached_0", "attached_1", *WHOLE, "plain"]
    for name in full:
        followed.writer.execute(f"alter table {name} replica identity full".encode())
    followed.writer.execute("alter table indexed replica identity using index by_code")
    for name in (*WHOLE, *KEYED):
        followed.writer.execute(f"alter table {name} alter v set storage external".encode())
        followed.writer.execute(COPIED.format(t=name).encode())
    followed.begin()
    assert followed.unlike() == {}


@pytest.fixture
def followed(database16: Database, tmp_path: Path):
    with Followed.of(database16, tmp_path) as followed:
        made(followed)
        yield followed


def test_random_histories_with_keys_that_are_enforced_late_end_as_the_server_has_them(followed: Followed) -> None:
    histories = Histories(random.Random(20284), followed.writer)
    for _ in range(4):
        for _ in range(12):
            for name in (*WHOLE, *KEYED):
                histories.transaction(name, (0,) if name in {"shifted", "late"} else (0, 1, 2))
        followed.capture()
        assert followed.merge() == {}
        assert followed.unlike() == {}


SHIFTS = {
    "all keys move up by one": "update {t} set pos = pos + 1",
    "two rows change places": "update {t} set pos = 3 - pos where pos in (1, 2)",
    "a second row of a key comes, and the first goes": "begin; set constraints all deferred; "
    "insert into {t} values (0, 2, 99, 'new'); delete from {t} where pos = 2 and v = 'copied'; commit",
    "rows are inserted and shifted in one batch": "insert into {t} select 0, i, i, 'new' from generate_series(6, 9) i; "
    "update {t} set pos = pos + 1 where v = 'new'; update {t} set pos = pos + 1",
    "a list is turned round": "update {t} set pos = 6 - pos",
}


def test_a_table_whose_key_is_enforced_late_loses_no_row(followed: Followed) -> None:
    for what, statements in SHIFTS.items():
        for name in WHOLE:
            followed.writer.execute(f"delete from {name}; {COPIED.format(t=name)}".encode())
            followed.writer.execute(statements.format(t=name).encode())
        followed.capture()

        assert (what, followed.merge(), followed.unlike()) == (what, {}, {})


def test_the_key_is_what_is_enforced_at_once(followed: Followed) -> None:
    keys = {name: table.key for name, table in followed.tables.items()}
    assert keys == {**dict.fromkeys(WHOLE, ()), "plain": ("list", "pos"), "indexed": ("code",)}
    assert {name: table.key_index != 0 for name, table in followed.tables.items()} == {
        name: bool(key) for name, key in keys.items()
    }
