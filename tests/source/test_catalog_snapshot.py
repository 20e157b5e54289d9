"""One look at the catalog is of one moment, takes as many statements for many tables as for one, and asks for no lock."""

import pytest

from penstock.source import catalog, catalog_snapshot
from penstock.source.session import SourceSession
from tests.source.conftest import pipeline

PATTERNS = pipeline("public.*").tables


def look(conn):
    return catalog_snapshot.read_catalog(conn, "p", patterns=PATTERNS)


@pytest.fixture
def shop(writer):
    writer.execute(
        "create table t (id int primary key); create table u (id int primary key); create view v as select 1 as one; "
        "create publication p for table t"
    )
    return writer


def test_it_holds_the_publication_its_tables_and_those_that_the_patterns_choose_beyond(conn, shop):
    found = look(conn)

    assert found.publication.oid > 0
    assert ([table.name for table in found.tables], found.listed) == (["t"], {found.tables[0].oid})
    assert [table.name for table in found.candidates] == ["u"]
    assert found.owned == {found.candidates[0].oid}
    assert [table.name for table in found.chosen] == ["t", "u"]
    assert [relation.name for relation in found.relations] == ["t", "u", "v"]


def test_without_a_publication_or_patterns_there_are_none(conn, shop):
    found = catalog_snapshot.read_catalog(conn, "other")

    assert (found.publication, found.tables, found.sent, found.choice, found.chosen) == (None, (), (), None, ())


def test_what_is_altered_while_it_is_read_is_in_all_of_it_or_in_none(conn, shop, monkeypatch):
    relations = catalog.relations

    def altered_meanwhile(session):
        shop.execute("alter publication p add table u; alter publication p set (publish = 'insert'); drop view v")
        return relations(session)

    monkeypatch.setattr(catalog, "relations", altered_meanwhile)
    before = look(conn)
    monkeypatch.undo()
    after = look(conn)

    assert [len(found.tables) for found in (before, after)] == [1, 2]
    assert [found.sent for found in (before, after)] == [
        ("insert", "update", "delete", "truncate"),
        ("insert",),
    ]
    assert [len(found.relations) for found in (before, after)] == [3, 2]


def test_many_tables_take_as_many_statements_as_one(conn, shop, monkeypatch):
    counted = []
    records, rows = SourceSession.records, SourceSession.rows
    monkeypatch.setattr(SourceSession, "records", lambda self, *a, **k: counted.append(a) or records(self, *a, **k))
    monkeypatch.setattr(SourceSession, "rows", lambda self, *a, **k: counted.append(a) or rows(self, *a, **k))
    look(conn)
    few = len(counted)
    for number in range(50):
        shop.execute(f"create table t{number} (id int primary key, v text default 'x')")

    assert len(look(conn).candidates) == 51
    assert len(counted) == 2 * few


def test_tables_that_another_transaction_holds_are_described_and_not_waited_for(conn, shop):
    with shop.transaction():
        shop.execute("lock table t, u in access exclusive mode")

        assert [table.name for table in look(conn).chosen] == ["t", "u"]
