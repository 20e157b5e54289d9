"""Columns that appear, and all other differences between the source and the lake."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.spark.histories import UNCHANGED, D, I, U, tx
from tests.spark.workbench import Workbench, column

pytestmark = pytest.mark.spark

KEY, A = column("k", "int4", key=True), column("a")


def test_rows_from_before_an_added_column_show_its_default(workbench: Workbench) -> None:
    """Rows in the lake, rows of the older files of the same batch, and rows that a later update leaves untouched."""
    table = workbench.table(KEY, A)
    workbench.merge_of(table, tx(I(k=1, a="x"), I(k=2, a="x"), I(k=3, a="x")))
    workbench.land(table, tx(I(k=4, a="x"), U(k=2, a="y")), names=("k", "a"))
    table.columns = (KEY, A, column("n", "int8", missing="7"), column("t", missing="it's"), column("z"))
    workbench.land(table, tx(I(k=5, a="x", n=1, t=None, z="z"), U(k=3, a="y", n=None, t=UNCHANGED, z=UNCHANGED)))

    workbench.merge()

    old = ("7", "it's", None)
    assert workbench.rows(table) == Counter(
        [
            ("1", "x", *old),
            ("2", "y", *old),
            ("4", "x", *old),
            ("3", "y", None, "it's", None),
            ("5", "x", "1", None, "z"),
        ]
    )


DEFAULTS = [
    ("bool", "t", "True"),
    ("int2", "-7", "-7"),
    ("int8", "9007199254740993", "9007199254740993"),
    ("float4", "0.1", "0.10000000149011612"),
    ("float8", "-0.1", "-0.1"),
    ("numeric(38,10)", "1234567890123456789012345678.0000000001", "1234567890123456789012345678.0000000001"),
    ("numeric", "1.10", "1.10"),
    ("text", "", ""),
    ("jsonb", '{"a": "ü"}', '{"a": "ü"}'),
    ("date", "2024-02-29", "2024-02-29"),
    ("timestamp", "2024-02-29 23:59:59.123456", "2024-02-29 23:59:59.123456"),
    ("timestamptz", "1969-12-31 23:59:59.000001+00", "1969-12-31 23:59:59.000001"),
    ("bytea", "\\x00ff", str(b"\x00\xff")),
    ("uuid", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001"),
]


def test_a_default_of_every_simple_type_is_shown_as_the_source_shows_it(workbench: Workbench) -> None:
    table = workbench.table(KEY)
    workbench.merge_of(table, tx(I(k=1)))
    table.columns = (KEY, *(column(f"c {at}.", type_, missing=text) for at, (type_, text, _) in enumerate(DEFAULTS)))
    workbench.land(table, tx(D(k=99)))

    workbench.merge()

    assert workbench.rows(table) == Counter([("1", *(shown for _, _, shown in DEFAULTS))])


def test_rows_from_before_are_found_and_rewritten_by_the_defaults_that_they_show(workbench: Workbench) -> None:
    """A bag finds a row by all of its values; a key that moves and a column that is not sent take along those that it has."""
    added = tuple(column(f"c {at}.", type_, missing=text) for at, (type_, text, _) in enumerate(DEFAULTS))
    old = {each.name: each.missing_text for each in added}
    shown = tuple(shown for _, _, shown in DEFAULTS)
    bag, keyed = workbench.table(A), workbench.table(KEY, A)
    workbench.land(bag, tx(I(a="stays"), I(a="changes"), I(a="goes")))
    workbench.merge_of(keyed, tx(I(k=1, a="x"), I(k=2, a="x"), I(k=3, a="x")))
    bag.columns, keyed.columns = (A, *added), (KEY, A, *added)
    changed = {**old, "c 0.": "f"}
    workbench.land(
        bag, tx(U({"a": "changes", **old}, full=True, a="changes", **changed), D(full=True, a="goes", **old))
    )
    unknown = dict.fromkeys(old, UNCHANGED)
    workbench.land(keyed, tx(U(k=1, a="y", **unknown), U({"k": 2}, k=4, a="x", **unknown)))

    merged = workbench.merge()

    assert [(each.paused_reason, each.counts["delete_missing"]) for each in merged] == [(None, 0)] * 2
    assert workbench.rows(bag) == Counter([("stays", *shown), ("changes", "False", *shown[1:])])
    assert workbench.rows(keyed) == Counter([("1", "y", *shown), ("4", "x", *shown), ("3", "x", *shown)])


def test_an_added_column_stands_before_the_misfits(workbench: Workbench) -> None:
    table = workbench.table(KEY, A)
    workbench.merge_of(table, tx(I(k=1, a="x")))
    table.columns = (KEY, A, column("a.b", missing="x"))
    workbench.merge_of(table, tx(D(k=99)))

    assert workbench.session().table(workbench.name(table)).columns == ["k", "a", "a.b", "_misfits"]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((KEY, replace(A, type=KEY.type)), "a has type string in the lake and maps to int now"),
        ((KEY, A, column("l", "int4[]", missing="{1}")), "default of the new column l"),
        ((KEY, A, column("d", "date", missing="infinity")), "default of the new column d"),
        ((KEY, A, column("_misfits")), "no source column named _misfits"),
    ],
    ids=[
        "retyped",
        "added with an array default",
        "added with a misfit default",
        "clashing",
    ],
)
def test_any_other_difference_pauses_the_table_and_says_why(workbench: Workbench, columns: tuple, reason: str) -> None:
    table = workbench.table(KEY, A)
    workbench.merge_of(table, tx(I(k=1, a="x")))
    before, table.columns = workbench.rows(table), columns
    workbench.land(table, tx(I(k=2)))

    [result] = workbench.merge()

    assert result.paused_slug == "schema-change"
    assert reason in result.paused_reason
    table.columns = (KEY, A)
    assert workbench.rows(table) == before


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ((KEY,), {(1,), (2,)}),
        ((KEY, replace(A, name="b")), {(1, "x"), (2, None)}),
        ((KEY, column("a", "int4")), {(1, None), (2, None)}),
        ((KEY, replace(A, dropped=True), column("b")), {(1, "x", None), (2, None, None)}),
    ],
    ids=["dropped", "renamed", "dropped and added under its name", "kept"],
)
def test_columns_are_known_by_number_and_follow(workbench: Workbench, columns: tuple, rows: set) -> None:
    table = workbench.table(KEY, A)
    workbench.merge_of(table, tx(I(k=1, a="x")))
    table.columns = columns
    workbench.land(table, tx(I(k=2)), names=("k",))

    [result] = workbench.merge()

    assert result.paused_reason is None
    names = [each.name for each in columns]
    assert {tuple(row) for row in workbench.session().table(workbench.name(table)).select(*names).collect()} == rows


def test_a_column_that_only_the_landing_file_knows_pauses_the_table(workbench: Workbench) -> None:
    table = workbench.table(KEY, A)
    workbench.land(table, tx(I(k=1, a="x", gone="y")), names=("k", "a", "gone"))

    [result] = workbench.merge()

    assert (result.paused_slug, result.pointer) == ("schema-change", None)


def test_a_change_without_its_key_pauses_the_table(workbench: Workbench) -> None:
    table = workbench.table(KEY, A)
    workbench.land(table, tx(I(k=1, a="x"), D(k=None)))

    [result] = workbench.merge()

    assert result.paused_slug == "schema-change"
    assert "the replica identity has changed" in result.paused_reason


def test_every_value_of_a_wide_row_may_misfit(workbench: Workbench) -> None:
    days = [f"day{number}" for number in range(60)]
    table = workbench.table(KEY, *(column(day, "date") for day in days))
    fits = dict.fromkeys(days, "2024-02-29")
    some = {**fits, "day7": "infinity", "day59": None}
    none_ = {day: f"{4713 - at:04} 01-01 BC" for at, day in enumerate(days)}
    table.land_copy([{"k": 1, **fits}, {"k": 2, **some}, {"k": 3, **fits}])
    workbench.land(table, tx(U(k=3, **none_), I(k=4, **some)))

    workbench.merge()

    expected = [("1", fits), ("2", some), ("3", none_), ("4", some)]
    assert workbench.rows(table) == Counter((key, *(row[day] for day in days)) for key, row in expected)
    assert sorted(map(len, workbench.misfits(table))) == [1, 1, 60]
