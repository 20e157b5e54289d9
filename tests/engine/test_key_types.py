"""Keys of every type, with values that the server takes for equal and prints unlike: what it did is what the lake holds.

A key is told by its text, which is what old rows bring: the server sends the old key wherever its bytes changed, equal or not.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from penstock.engine.task import Shape
from stack.servers.postgres import Database
from tests.engine.followed import Followed

EXTENSIONS = """
create extension citext; create extension hstore; create domain word as citext;
create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
"""
OF_EXTENSIONS = frozenset({"citext", "citext[]", "word", "hstore", 'text collate "blind"', 'text[] collate "blind"'})
"""The embedded server has neither extensions nor ICU."""
SETUP = """
create type mood as enum ('sad', 'glad');
create type pair as (x float8, y numeric);
create type floats as range (subtype = float8, multirange_type_name = floats_multi);
create domain price as numeric; create domain angle as float8; create domain angles as float8[];
create domain spell as interval;
"""
COARSE: Mapping[str, Sequence[str]] = {
    "float8": ("0", "-0", "NaN", "1", "-Infinity"),
    "float4": ("0", "-0", "NaN", "1.5"),
    "float8[]": ("{0}", "{-0}", "{NaN}", "{NaN,-0}", "{NaN,0}", "{}", "{NULL}", "{{0},{1}}", "{{-0},{1}}", "[2:2]={0}"),
    "float4[]": ("{0,1}", "{-0,1}", "{NaN}", "{1}", "{Infinity}"),
    "numeric": ("1", "1.0", "1.00", "0", "0.0", "NaN", "10", "1e1"),
    "numeric[]": ("{1}", "{1.0}", "{NaN}", "{0.00,NULL}", "{0,NULL}"),
    "interval": ("1 day", "24:00:00", "30 days", "1 mon", "0", "48:00:00", "2 days"),
    "interval[]": ('{"1 day"}', "{24:00:00}", '{"1 mon"}', "{NULL}"),
    "jsonb": ("1", "1.0", "[1]", "[1.00]", '{"a": 1}', '{"a": 1.0}', "null", '"1"'),
    "bpchar": ("a", "a  ", "b", ""),
    "citext": ("a", "A", "b", "ab", "AB"),
    "citext[]": ("{a}", "{A}", "{a,b}", "{a,B}"),
    'text collate "blind"': ("a", "A", "b", "B", ""),
    'text[] collate "blind"': ("{a}", "{A}", '{a,"B c"}', '{A,"b c"}'),
    "pair": ("(0,1)", "(-0,1.0)", "(NaN,NaN)", "(0,)", "(-0,)"),
    "pair[]": ('{"(0,1)"}', '{"(-0,1.0)"}', '{"(NaN,2)"}'),
    "numrange": ("[1,2)", "[1.0,2.00)", "empty", "(,1]", "(,1.0]"),
    "nummultirange": ("{[1,2)}", "{[1.0,2)}", "{}", "{[1,2),[3,4)}"),
    "floats": ("[0,1)", "[-0,1)", "[NaN,NaN]", "(,)"),
    "floats_multi": ("{[0,1)}", "{[-0,1)}", "{}"),
    "price": ("1", "1.0", "2"),
    "price[]": ("{1}", "{1.0}", "{2}"),
    "angle": ("0", "-0", "NaN"),
    "angles": ("{0}", "{-0}", "{NaN}", "{NaN,-0}"),
    "word": ("a", "A", "b"),
    "spell": ("1 day", "24:00:00", "1 mon"),
}
"""Types some of whose values are equal to the server and have different texts."""
EXACT: Mapping[str, Sequence[str]] = {
    "int4": ("0", "1", "-1"),
    "bool": ("t", "f"),
    "numeric(6,2)": ("1", "1.00", "1.5", "NaN"),
    "numeric(3,-1)": ("10", "20", "990"),
    "numeric(6,2)[]": ("{1}", "{1.00,NULL}", "{NaN}", "{}"),
    "text": ("a", "a ", "A", "", "a\tb"),
    "varchar(5)": ("a", "a ", ""),
    "char(5)": ("a", "a  ", "b"),
    "char(3)[]": ("{a}", "{'a '}", '{"b",NULL}'),
    '"char"': ("a", "", "\\303"),
    "name": ("a", "b", ""),
    "bytea": ("", "\\x00", "\\xff10", "\\x5c78"),
    "bytea[]": ('{"\\\\x00"}', "{}", '{"\\\\xff10",NULL}'),
    "date": ("2024-02-29", "infinity", "-infinity", "0044-03-15 BC", "12024-01-01"),
    "date[]": ("{2024-02-29}", "{infinity}", "{NULL}", "{2024-02-29,NULL}"),
    "timestamp": ("2024-02-29 01:02:03.5", "2024-02-29 01:02:03", "infinity", "0044-03-15 BC"),
    "timestamptz": ("2024-02-29 01:02:03+00", "2024-02-29 03:02:03+02", "-infinity", "9999-12-31 23:59:59.999999+00"),
    "timestamptz[]": ('{"2024-02-29 01:02:03+00"}', '{"2024-02-29 03:02:03+02"}', "{infinity}", "{}"),
    "time": ("24:00:00", "00:00:00", "01:02:03.4"),
    "timetz": ("12:00+00", "13:00+01", "12:00+01"),
    "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12"),
    "inet": ("10.0.0.1", "10.0.0.1/32", "10.0.0.1/24", "::1"),
    "cidr": ("10.0.0.0/8", "10.0.0.0/16"),
    "macaddr": ("08:00:2b:01:02:03", "08:00:2b:01:02:04"),
    "bit(3)": ("101", "000"),
    "varbit": ("1", "10", "100", ""),
    "money": ("1.00", "-1.00"),
    "oid": ("1", "4294967295"),
    "pg_lsn": ("0/1", "FF/FF"),
    "tid": ("(0,1)", "(0,2)"),
    "tsvector": ("a b", "b:1 a", ""),
    "tsquery": ("a & b", "a | b"),
    "mood": ("sad", "glad"),
    "mood[]": ("{sad}", "{sad,glad}", "{}"),
    "hstore": ("a=>1, bb=>2", "bb=>2, a=>1", "a=>NULL", 'a=>"NULL"', ""),
    "int4[]": ("{1}", "[0:0]={1}", "{{1}}", "{}", "{NULL}", "{1,NULL}"),
    "text[]": ("{NULL}", '{"NULL"}', '{""}', "{}", '{"a,b"}', "{a,b}"),
    "bool[]": ("{t,f}", "{t,NULL}", "{}"),
    "int4range": ("[1,2)", "[1,1]", "empty", "(,)"),
    "int4multirange": ("{[1,3)}", "{[1,2),[2,3)}", "{}"),
    "daterange": ("[2024-01-01,2024-01-02)", "[2024-01-01,infinity)", "(,)"),
}
LONG = "repeat(md5({}::text), 100)"


@dataclass(frozen=True)
class Keyed:
    """A table with a key of one type; whole old rows come where `full`."""

    name: str
    type: str
    values: Sequence[str]
    full: bool

    def make(self, conn: psycopg.Connection) -> None:
        conn.execute(f"create table {self.name} (k {self.type} primary key, n int, v text)")
        conn.execute(f"alter table {self.name} alter v set storage external")
        if self.full:
            conn.execute(f"alter table {self.name} replica identity full")
        for value in self.values[::2]:
            self.insert(conn, value)

    def insert(self, conn: psycopg.Connection, value: str) -> None:
        conn.execute(
            f"insert into {self.name} values ({self._typed(value)}, 0, {LONG.format(len(value))}) on conflict do nothing"
        )

    def change(self, conn: psycopg.Connection, rng: random.Random) -> None:
        """Do something at random; what the server refuses has not happened."""
        value, other = (rng.choice(self.values) for _ in range(2))
        where = f"where k = {self._typed(value)}"
        what = rng.choice(["insert", "insert", "update", "update", "move", "move", "move", "wide", "delete"])
        with suppress(psycopg.errors.UniqueViolation), conn.transaction():
            if what == "insert":
                self.insert(conn, value)
            elif what == "update":
                conn.execute(f"update {self.name} set n = n + 1 {where}")
            elif what == "move":
                conn.execute(f"update {self.name} set k = {self._typed(other)} {where}")
            elif what == "wide":
                conn.execute(f"update {self.name} set v = {LONG.format(rng.randrange(9))} {where}")
            else:
                conn.execute(f"delete from {self.name} {where}")

    def respell(self, conn: psycopg.Connection) -> None:
        """Write each key as another value that equals it, if there is one."""
        for value in self.values:
            conn.execute(f"update {self.name} set k = {self._typed(value)} where k = {self._typed(value)}")

    def equal_pairs(self, conn: psycopg.Connection) -> list[tuple[bool, bool]]:
        """Return of each two values whether they are equal to the server, and whether their texts are."""
        rows = ", ".join(f"({self._typed(value)})" for value in self.values)
        return conn.execute(
            f"with v (k) as (values {rows}) "
            "select a.k = b.k, format('%s', a.k) collate \"C\" = format('%s', b.k) from v a, v b"
        ).fetchall()

    def _typed(self, value: str) -> str:
        text = "'" + value.replace("'", "''") + "'"
        type_, _, collation = self.type.partition(" collate ")
        return f"{text}::{type_}" + (f" collate {collation}" if collation else "")


def set_up(conn: psycopg.Connection) -> Mapping[str, Sequence[str]]:
    """Make the types that the server can have, and return all these."""
    conn.execute(SETUP)
    types = {**COARSE, **EXACT}
    (there,) = conn.execute("select count(*) > 0 from pg_available_extensions where name = 'citext'").fetchone() or ()
    if there:
        conn.execute(EXTENSIONS)
        return types
    return {type_: values for type_, values in types.items() if type_ not in OF_EXTENSIONS}


def tables(types: Mapping[str, Sequence[str]]) -> list[Keyed]:
    return [
        Keyed(f"t{number}_{'full' if full else 'key'}", type_, values, full)
        for number, (type_, values) in enumerate(types.items())
        for full in (False, True)
    ]


def follow(followed: Followed, tables: Sequence[Keyed], *, rounds: int, changes: int) -> None:
    rng = random.Random(20281)
    types = {each.name: each.type for each in tables}
    for each in tables:
        each.make(followed.writer)
    followed.begin()
    assert {types[name]: found for name, found in followed.unlike().items()} == {}
    for number in range(rounds):
        for each in tables:
            if number % 2:
                each.respell(followed.writer)
            with followed.writer.transaction():
                for _ in range(changes):
                    each.change(followed.writer, rng)
        followed.capture()
        assert {types[name]: why for name, why in followed.merge().items()} == {}
        assert {types[name]: found for name, found in followed.unlike().items()} == {}


def test_some_values_are_equal_with_unlike_texts_and_none_are_unlike_with_one_text(database: Database) -> None:
    with database.connect() as conn:
        every = tables(set_up(conn))
        pairs = {each.type: each.equal_pairs(conn) for each in every}

    assert {type_ for type_, found in pairs.items() if (True, False) in found} == COARSE.keys() & pairs.keys()
    assert {type_ for type_, found in pairs.items() if (False, True) in found} == set()


@pytest.mark.parametrize(
    "shape", [None, pytest.param(Shape(3, 2, 2), marks=pytest.mark.slow)], ids=["by one task", "by many tasks"]
)
def test_keys_of_floats_and_arrays_of_floats_end_as_the_server_has_them(
    database16: Database, tmp_path: Path, shape: Shape | None
) -> None:
    chosen = {type_: COARSE[type_] for type_ in ("float8", "float8[]", "float4[]", "angles")}
    with Followed.of(database16, tmp_path) as followed:
        followed.lake.shape = shape
        set_up(followed.writer)
        follow(followed, tables(chosen), rounds=3, changes=12)


@pytest.mark.slow
def test_keys_of_every_type_end_as_the_server_has_them(database: Database, tmp_path: Path) -> None:
    with Followed.of(database, tmp_path) as followed:
        follow(followed, tables(set_up(followed.writer)), rounds=3, changes=12)
