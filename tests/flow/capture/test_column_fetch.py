"""Which changes are ended by the values of some columns, and which are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.shapes.accepted import Accepted
from penstock.shapes.column_changes import Following
from penstock.shapes.column_fetch import Fetch, refilled
from penstock.shapes.source_table import SourceColumn, SourceTable
from penstock.shapes.table_facts import column_plan
from penstock.shapes.table_verdict import verdict
from penstock.values.pgtype import PgType
from tests.shapes.tables import BIGINT, HEAP, ID, INT, TEXT, planned, source_table

MOOD = PgType(900, -1, "public", "mood", "e")
MOODS = PgType(901, -1, "public", "_mood", "b", element=MOOD)
PAIR = PgType(950, -1, "public", "pair", "c")
A = SourceColumn("a", 2, INT, version="700")
M = SourceColumn("m", 3, MOOD, version="700", parts=frozenset({900}))
TABLE = source_table(
    columns=(ID, A, M),
    hidden=("g",),
    enums={900: ("sad", "ok")},
    membership=("table 1",),
    hidden_attnums=(4,),
    part_versions={900: ("1 700", "2 700")},
    part_names={900: "mood"},
    attnums=4,
)
NEWER = (replace(HEAP, relfilenode=201),)
RENAMED = {"enums": {900: ("blue", "ok")}, "part_versions": {900: ("1 709", "2 700")}}
ALTERED = replace(A, version="705")
U = SourceColumn("u", 5, TEXT, version="705")
G = SourceColumn("g", 4, INT, version="705")


def fetched(now: SourceTable, before: SourceTable = TABLE, *, follows: bool = True) -> Fetch | None:
    following = Following(columns=follows)
    found = verdict(planned(before), before.identity, Accepted(before.shape), now, following=following)
    assert found.reason is not None
    return found.fetch


@pytest.mark.parametrize(
    ("now", "fetch"),
    [
        (replace(TABLE, leaves=NEWER, columns=(ID, A, M, U)), Fetch(frozenset({5}))),
        (replace(TABLE, leaves=NEWER, columns=(ID, ALTERED, M)), Fetch(frozenset({2}))),
        (replace(TABLE, leaves=NEWER, columns=(ID, replace(ALTERED, type=TEXT), M)), Fetch(frozenset({2}))),
        (replace(TABLE, columns=(ID, replace(ALTERED, type=TEXT), M)), Fetch(frozenset({2}))),
        (replace(TABLE, columns=(ID, A, M, G), hidden=(), hidden_attnums=()), Fetch(frozenset({4}))),
        (replace(TABLE, **RENAMED), Fetch(frozenset({3}), ("blue",))),
        (replace(TABLE, **RENAMED, leaves=NEWER, columns=(ID, ALTERED, M)), Fetch(frozenset({2, 3}))),
    ],
)
def test_a_change_of_values_of_columns_is_ended_by_these(now: SourceTable, fetch: Fetch) -> None:
    assert fetched(now) == fetch
    assert fetched(now, follows=False) is None


def test_labels_within_an_array_or_a_composite_cost_all_of_its_column() -> None:
    of_arrays = replace(TABLE, columns=(ID, A, replace(M, type=MOODS)))
    assert fetched(replace(of_arrays, **RENAMED), of_arrays) == Fetch(frozenset({3}))

    of_pairs = replace(TABLE, columns=(ID, replace(A, type=PAIR, parts=frozenset({950, 900})), M))
    assert fetched(replace(of_pairs, **RENAMED), of_pairs) == Fetch(frozenset({2, 3}))


PAIRS = replace(
    TABLE,
    columns=(ID, replace(A, type=PAIR, parts=frozenset({950, 23})), M),
    composites={950: (("x", 23, -1), ("y", 23, -1))},
    part_versions={**TABLE.part_versions, 950: ("1 700", "2 700")},
)


def pairs(names: str, *versions: str, types: int = 23) -> SourceTable:
    """Return the table with a pair of these attributes, whose catalog rows have these versions."""
    known = {**PAIRS.part_versions, 950: versions}
    return replace(PAIRS, composites={950: tuple((name, types, -1) for name in names)}, part_versions=known)


def test_attributes_that_came_or_went_cost_the_columns_that_hold_the_type() -> None:
    for now in (
        pairs("xyz", "1 700", "2 700", "3 709"),
        pairs("x", "1 700", "2 709"),
        pairs("xy", "1 700", "2 709", "3 709"),
        pairs("xy", "1 700", "2 700", "3 709"),
        pairs("xy", "1 700", "2 709", types=20),
    ):
        assert fetched(now, PAIRS) == Fetch(frozenset({2}))


def test_attributes_that_were_only_renamed_change_no_value() -> None:
    known = tuple(map(column_plan, PAIRS.columns))
    for now in (pairs("xz", "1 700", "2 709"), pairs("yx", "1 709", "2 709"), pairs("xy", "1 709", "2 700")):
        assert verdict(known, "d", Accepted(PAIRS.shape), now, following=Following()).reason is None


@pytest.mark.parametrize(
    "but",
    [
        {"name": "other"},
        {"columns": (replace(ID, version="705"), ALTERED, M)},
        {"kind": "p", "leaves": (replace(HEAP, oid=101),)},
        {"membership": ("schema 1",)},
    ],
    ids=["renamed", "its key", "partitioned", "may be unlogged"],
)
def test_a_change_of_more_than_values_of_columns_costs_the_table(but: dict[str, object]) -> None:
    assert fetched(replace(TABLE, **{"leaves": NEWER, "columns": (ID, ALTERED, M), **but})) is None


def test_neither_a_filtered_table_nor_one_without_a_key_is_fetched_from() -> None:
    for before in (replace(TABLE, filter_digest="x"), replace(TABLE, identity="f", key=(), columns=(A, M))):
        columns = tuple(ALTERED if column is A else column for column in before.columns)
        assert fetched(replace(before, leaves=NEWER, columns=columns), before) is None


def test_a_type_that_the_lakes_field_cannot_become_begins_another_generation() -> None:
    before = tuple(map(column_plan, TABLE.columns))
    fetch = Fetch(frozenset({2, 3}))

    def generations(type_: PgType) -> list[int]:
        return [
            column.generation
            for column in refilled((before[0], replace(before[1], type=type_), before[2]), before, fetch)
        ]

    assert generations(BIGINT) == [0, 0, 0], "Iceberg widens it"
    assert generations(TEXT) == [0, 1, 0]
