"""What is asked for of a table's rows, as the ledger and the tasks are told it, and what forbids that they are copied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.flow.load import fetch
from penstock.flow.load.spark_copy import ReadRequest
from penstock.flow.load.waiting import why_no_copy
from penstock.jobs.plans import CopyRange
from penstock.ledger.loads import NewRead
from penstock.lsn import Lsn
from penstock.shapes.plan import Plan
from penstock.shapes.reads import ColumnRead, LeafRead
from penstock.shapes.source_table import SourceColumn, SourceTable
from tests.flow.schema.test_catalog_decisions import FACTS
from tests.shapes.tables import HEAP, ID, INT, TEXT, known_as, planned, source_table

LEAF = replace(HEAP, oid=101, name="t_1")
NOW = source_table(
    columns=(ID, SourceColumn("name", 2, TEXT), SourceColumn("n", 4, INT)), leaves=(HEAP, LEAF), kind="p"
)
TYPED = (("id", "int"), ("n", "int"))
RANGE = CopyRange(100, "public", "t", ("id", "name", "n"), 0, None, None, "x", TYPED)
BOUND = [[1, "int", "0", "9", None]]
WHOLE = ReadRequest(NOW, NewRead(100))
FETCH = ReadRequest(NOW, NewRead(100, "columns", (4,), whole=True))


@pytest.mark.parametrize(
    ("request_", "given", "other"),
    [
        pytest.param(WHOLE, {}, {}, id="whole rows"),
        pytest.param(WHOLE, {"where": "a"}, {"where": "a"}, id="those of the publication"),
        pytest.param(replace(WHOLE, where="b"), {}, {"where": "b"}, id="those of the request"),
        pytest.param(replace(WHOLE, where="b"), {"where": "a"}, {"where": "(a) and (b)"}, id="those of both"),
        pytest.param(
            replace(WHOLE, where="b"), {"plain": True}, {"plain": True, "where": None}, id="all of what has no query"
        ),
        pytest.param(replace(WHOLE, texts=frozenset({"n"})), {}, {"typed": TYPED[:1]}, id="a column as text"),
        pytest.param(
            FETCH,
            {},
            {"columns": ("id", "n"), "typed": (), "attnums": (1, 4), "commit_lsn": 15},
            id="values by key, right before the position",
        ),
    ],
)
def test_a_task_is_told_what_is_asked_for(request_: ReadRequest, given: dict[str, Any], other: dict[str, Any]) -> None:
    assert request_.order(replace(RANGE, **given), Lsn(16)) == replace(RANGE, **other)


@pytest.mark.parametrize(
    ("read", "told", "leaves"),
    [
        pytest.param(
            ColumnRead(frozenset({4})),
            NewRead(100, "columns", (4,), whole=True),
            (HEAP, LEAF),
            id="all values of a column",
        ),
        pytest.param(
            ColumnRead(frozenset({4, 2}), ("old",)),
            NewRead(100, "columns", (2, 4), whole=False),
            (HEAP, LEAF),
            id="some values of two",
        ),
        pytest.param(
            LeafRead(frozenset({101}), (BOUND,)),
            NewRead(100, "partitions", (1, 2, 4), stays=(BOUND,), leaves=("t_1",)),
            (LEAF,),
            id="a partition",
        ),
    ],
)
def test_the_ledger_is_told_what_is_fetched(
    read: ColumnRead | LeafRead, told: NewRead, leaves: tuple[Any, ...]
) -> None:
    record, decided = known_as(NOW), Plan(planned(NOW))
    if isinstance(read, ColumnRead):
        request = fetch._of_columns(record, NOW, decided, read).request
    else:
        request = fetch._of_partitions(record, NOW, decided, read, Lsn(16)).request

    assert (request.new, request.table.leaves) == (told, leaves)


NO_KEY = source_table(identity="n", key=())
BY_NAME = source_table(columns=(replace(ID, names_objects="regclass"),))
UNLOGGED = replace(NOW, leaves=(replace(HEAP, persistence="u"),))
INSERTS = replace(FACTS, sent=("insert", "truncate", "via_root"))


@pytest.mark.parametrize(
    ("table", "events", "joining", "slug", "text"),
    [
        pytest.param(NOW, FACTS, False, None, "", id="nothing"),
        pytest.param(NO_KEY, None, True, "no-usable-identity", "it has no primary key", id="no key"),
        pytest.param(
            NO_KEY, FACTS, True, "no-usable-identity", "it has no primary key", id="no key, for updates and deletes"
        ),
        pytest.param(
            NO_KEY,
            replace(INSERTS, sent=(*INSERTS.sent, "update")),
            True,
            "no-usable-identity",
            "its copy, but it has no",
            id="for updates",
        ),
        pytest.param(
            NO_KEY,
            replace(INSERTS, sent=(*INSERTS.sent, "delete")),
            True,
            "no-usable-identity",
            "its copy, but it has no",
            id="for deletes",
        ),
        pytest.param(NO_KEY, INSERTS, True, None, "", id="no key, for inserts alone"),
        pytest.param(BY_NAME, FACTS, True, "no-usable-identity", "to be found after its copy", id="a key of names"),
        pytest.param(BY_NAME, INSERTS, True, None, "", id="a key of names, for inserts alone"),
        pytest.param(UNLOGGED, FACTS, False, "schema-change", "these are unlogged: public.t;", id="unlogged"),
        pytest.param(UNLOGGED, FACTS, True, None, "", id="unlogged, and its rows were never there"),
    ],
)
def test_what_forbids_a_copy_is_said_before_it(
    table: SourceTable, events: Any, joining: bool, slug: str | None, text: str
) -> None:
    found = why_no_copy(table, events, joining=joining)

    assert (found.slug if found else None) == slug
    assert text in (found.message if found else "")
