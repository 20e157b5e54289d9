"""The catalog says of every table what the stream will carry, where its rows lie, and what must not change unseen."""

import json

import pytest

from penstock.shapes.accepted import Accepted
from penstock.shapes.source_table import Shape
from penstock.source import catalog, publication
from penstock.source.catalog_snapshot import read_catalog
from penstock.source.session import SourceSession
from tests.source.conftest import all_tables


def described(conn: SourceSession, name: str, publication: str | None = None) -> catalog.SourceTable:
    tables = read_catalog(conn, publication, sizes=True).tables if publication else all_tables(conn)
    (table,) = (table for table in tables if table.name == name)
    return table


def test_columns_come_in_attnum_order_with_what_is_known_of_them(conn, writer):
    writer.execute(
        """create table t (id int generated always as identity primary key, gone text, "Mixed ""C""ase" text not null,
        doubled int generated always as (1 + 1) stored, d text default 'x');
        alter table t drop column gone"""
    )

    table = described(conn, "t")

    shown = [(c.attnum, c.name, c.not_null, c.key, c.identity) for c in table.columns]
    assert shown == [
        (1, "id", True, True, "a"),
        (3, 'Mixed "C"ase', True, False, ""),
        (5, "d", False, False, ""),
    ]
    assert tuple(table.hidden.values()) == ("doubled",)
    assert (table.kind, table.persistence, table.identity, table.key) == ("r", "p", "d", ("id",))


def test_types_are_trees_of_domains_arrays_and_enums(conn, writer):
    writer.execute(
        """create type mood as enum ('sad', 'glad');
        create domain price as numeric(10, 2); create domain net as price;
        create table t (n net, moods mood[], words varchar(7)[], v int2vector, p point)"""
    )

    n, moods, words, vector, point = (column.type for column in described(conn, "t").columns)

    assert (n.name, n.kind, n.base.name, n.base.kind) == ("net", "d", "price", "d")
    assert (n.base.base.name, n.base.base.typmod) == ("numeric", ((10 << 16) | 2) + 4)
    assert (moods.name, moods.element.name, moods.element.kind, moods.element.schema) == (
        "_mood",
        "mood",
        "e",
        "public",
    )
    assert (words.typmod, words.element.name, words.element.typmod) == (11, "varchar", 11)
    assert vector.element is None  # its text is not an array's
    assert point.element is None


ATTACHED = (
    "create table t (a int primary key) partition by range (a); create table t_1 (a int primary key deferrable); "
    "alter table t attach partition t_1 for values from (1) to (9);"
)
"""The partition's part of the key is deferrable, and the partitioned table's index is not."""
IDENTITIES = [
    ("create table t (a int, b int, primary key (b, a))", "d", ("b", "a")),
    ("create table t (a int)", "n", ()),
    ("create table t (a int primary key deferrable)", "n", ()),
    ("create table t (a int primary key); alter table t replica identity nothing", "n", ()),
    ("create table t (a int primary key, b int); alter table t replica identity full", "f", ("a",)),
    ("create table t (a int primary key deferrable); alter table t replica identity full", "f", ()),
    (
        "create table t (a int primary key deferrable, b int not null unique); alter table t replica identity using index t_b_key",
        "i",
        ("b",),
    ),
    (f"{ATTACHED} alter table t replica identity full; alter table t_1 replica identity full", "f", ()),
    (f"{ATTACHED} alter table t_1 replica identity full", "n", ()),
    ("create table t (a int); alter table t replica identity full", "f", ()),
    (
        "create table t (a int primary key, b int not null); create unique index i on t (b) include (a);"
        "alter table t replica identity using index i",
        "i",
        ("b",),
    ),
    (
        "create table t (a int primary key, b int not null); create unique index i on t (b);"
        "alter table t replica identity using index i; drop index i",
        "n",
        (),
    ),
]


def test_the_key_is_what_the_replica_identity_says(conn, writer):
    for number, (statements, _, _) in enumerate(IDENTITIES):
        writer.execute(f"create schema s{number}; set search_path = s{number}; {statements}")

    tables = sorted((t for t in all_tables(conn) if t.name == "t"), key=lambda table: int(table.schema[1:]))

    assert [(table.identity, table.key) for table in tables] == [(identity, key) for _, identity, key in IDENTITIES]
    for table in tables:
        assert {column.name for column in table.columns if column.key} == set(table.key)


MISSING = {
    "text": ("""'x,"y}'""", 'x,"y}'),
    "int[]": ("'{1,NULL}'", "{1,NULL}"),
    "text[]": ("""'{"a,b",""}'""", '{"a,b",""}'),
    "box": ("'((1,1),(0,0))'", "(1,1),(0,0)"),
    "bool": ("true", "t"),
    "char(4)": ("'ab'", "ab  "),
    "timestamptz": ("'2020-01-01 05:30+05:30'", "2020-01-01 00:00:00+00"),
    "numeric": ("'NaN'", "NaN"),
}


def test_a_column_added_later_shows_old_rows_the_default_of_that_day_as_the_servers_own_text(conn, writer):
    writer.execute("create table t (id int primary key); insert into t values (1)")
    for number, (type_name, (default, _)) in enumerate(MISSING.items()):
        writer.execute(f"alter table t add c{number} {type_name} default {default}")
        writer.execute(f"alter table t alter c{number} drop default")
    writer.execute("alter table t add without text")

    columns = described(conn, "t").columns

    assert [column.missing_text for column in columns] == [None, *(text for _, text in MISSING.values()), None]


def test_a_partitioned_table_is_its_root_with_all_leaves_and_their_missing_values(conn, writer):
    writer.execute(
        """create table m (id int, at int, primary key (id, at)) partition by range (at);
        create table m_1 partition of m for values from (0) to (10);
        create table m_2 partition of m for values from (10) to (30) partition by range (at);
        create table m_2_a partition of m_2 for values from (10) to (20);
        create table m_2_b (junk int, at int not null, id int not null);
        alter table m_2_b drop junk; alter table m_2 attach partition m_2_b for values from (20) to (30);
        insert into m select g, g from generate_series(0, 29) g;
        alter table m add note text default 'old';
        create publication p for table m with (publish_via_partition_root = true)"""
    )

    (table,) = read_catalog(conn, "p", sizes=True).tables

    assert (table.kind, table.file) == ("p", 0)
    assert [leaf.name for leaf in table.leaves] == ["m_1", "m_2_a", "m_2_b"]
    assert all(leaf.blocks == 1 and leaf.bytes == 8192 and leaf.ranged for leaf in table.leaves)
    assert [column.missing_text for column in table.columns] == [None, None, "old"]


def test_column_lists_and_row_filters_of_the_publication_are_read(conn, writer):
    writer.execute(
        """create table t (id int primary key, a text, b text, g int generated always as (1) stored);
        create publication p for table t (id, b) where (id > 5 and b <> '{%s}')"""
    )

    table = described(conn, "t", "p")

    assert [column.name for column in table.columns] == ["id", "b"]
    assert table.hidden == {2: "a", 4: "g"}
    assert catalog.with_filter(conn, "p", table).where == "((id > 5) AND (b <> '{%s}'::text))"
    with pytest.raises(AssertionError, match="was not asked for"):
        assert table.where is None


def test_a_generated_column_is_never_streamed_though_15_lists_it(conn, writer):
    writer.execute(
        """create table t (id int primary key, g int generated always as (1) stored);
        create publication p for table t"""
    )

    assert described(conn, "t", "p").hidden == {2: "g"}


def test_a_shape_survives_json_and_changes_with_every_silent_change(conn, writer):
    writer.execute(
        """create type mood as enum ('sad', 'glad'); create type pair as (a int, m mood);
        create table above (x int); create table t (id int primary key, m mood, p pair[], r int4range) inherits (above);
        create table m (id int primary key) partition by range (id);
        create table m_1 partition of m for values from (0) to (9)"""
    )

    def shapes() -> dict[str, Shape]:
        return {table.name: table.shape for table in all_tables(conn, sizes=False)}

    seen = shapes()
    known = [Accepted(shape) for shape in seen.values()]
    assert [Accepted.from_json(json.loads(json.dumps(each.to_json()))) for each in known] == known
    assert shapes() == seen
    for table, statement in [
        ("t", "alter type mood rename value 'sad' to 'blue'"),
        ("t", "alter type mood add value 'mad' before 'glad'"),
        ("t", "alter type pair add attribute b text"),
        ("t", "alter table t alter r type text"),
        ("t", "alter table t add d int default 7"),
        ("t", "vacuum full t"),
        ("t", "alter table t rename id to ident"),
        ("t", "alter table t replica identity full"),
        ("t", "alter table t no inherit above"),
        ("t", "alter table t set unlogged"),
        ("m", "create table m_2 partition of m for values from (9) to (99)"),
        ("m", "truncate m_1"),
        ("m", "alter table m detach partition m_2"),
    ]:
        writer.execute(statement)
        now = shapes()
        assert now[table] != seen[table], statement
        seen = now


def test_a_hundred_tables_take_as_many_statements_as_one(conn, writer, monkeypatch):
    for number in range(100):
        writer.execute(f"create table t{number} (id int primary key, v text default 'x')")
    writer.execute("create publication p for all tables; create publication one for table t1")
    counted: list[object] = []
    records, ask = SourceSession.records, SourceSession.ask
    monkeypatch.setattr(SourceSession, "records", lambda self, *a, **k: counted.append(a) or records(self, *a, **k))
    monkeypatch.setattr(SourceSession, "ask", lambda self, *a, **k: counted.append(a) or ask(self, *a, **k))

    assert len(read_catalog(conn, "p").tables) == 100
    many = len(counted)
    assert len(read_catalog(conn, "one").tables) == 1

    assert len(counted) == 2 * many


def test_without_sizes_a_table_under_ddl_is_described_and_not_waited_for(conn, writer):
    writer.execute("create table t (id int primary key)")
    with writer.transaction():
        writer.execute("lock table t in access exclusive mode")

        table = next(table for table in all_tables(conn, sizes=False) if table.name == "t")

    assert table.bytes == 0


def test_a_publication_is_known_by_its_oid(conn, writer):
    writer.execute("create table t (id int primary key); create publication p for table t")
    first = publication.read_publication(conn, "p")
    writer.execute("drop publication p; create publication p for table t")

    assert publication.read_publication(conn, "p").oid != first.oid
    assert publication.read_publication(conn, "nobody's") is None
    assert read_catalog(conn, "nobody's").tables == ()
