"""What the pipeline file says about rows and values that do not fit: continue, or pause that table only."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.spark.histories import UNCHANGED, D, Event, I, U, tx
from tests.spark.workbench import Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("k", "int4", key=True), column("a"), column("d", "date"))
START = tx(I(k=1, a="one", d="2024-01-01"), I(k=2, a="two", d=None))


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([D(k=7)], "delete_missing 1"),
        ([U(k=7, a="x", d=None)], "update_missing 1"),
        ([I(k=1, a="x", d=None)], "insert_existing 1"),
        ([I(k=1, a="x", d=None), D(k=7)], "delete_missing 1, insert_existing 1"),  # together they cancel out
    ],
)
def test_a_conflict_pauses_the_table_where_the_pipeline_says_fail(
    workbench: Workbench, events: list[Event], told: str
) -> None:
    table = workbench.table(*COLUMNS)
    workbench.land(table, START)
    workbench.merge()
    before = workbench.rows(table)
    workbench.land(table, tx(*events))

    [result] = workbench.merge(on_conflict="fail")

    assert result.paused_slug == "merge-conflict"
    assert told in result.paused_reason
    assert workbench.rows(table) == before


def test_changes_without_a_conflict_pass_where_the_pipeline_says_fail(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS)
    workbench.land(table, START)
    workbench.merge(on_conflict="fail")
    workbench.land(table, tx(I(k=3, a="x", d=None), U(k=3, a="y", d=UNCHANGED), U(k=1, a=UNCHANGED, d=None), D(k=2)))

    [result] = workbench.merge(on_conflict="fail")

    assert result.paused_slug is None
    assert workbench.rows(table) == Counter([("1", "one", None), ("3", "y", None)])


def test_a_missing_row_of_a_bag_pauses_the_table_where_the_pipeline_says_fail(workbench: Workbench) -> None:
    table = workbench.table(column("a"))
    workbench.land(table, tx(I(a="x")))
    workbench.merge()
    workbench.land(table, tx(D(True, a="x"), D(True, a="x")))

    [result] = workbench.merge(on_conflict="fail")

    assert (result.paused_slug, workbench.rows(table)) == ("merge-conflict", Counter([("x",)]))


def test_misfits_are_kept_next_to_the_row_until_the_value_fits(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS, column("n", "numeric(4,2)"), column("x y", "timestamp"))
    far = {"d": "infinity", "n": "NaN", "x y": "0044-03-15 00:00:00 BC"}
    workbench.land(
        table, tx(I(k=1, a="x", **far), I(k=2, a="x", **far), I(k=3, a="x", d=None, n="1.50", **{"x y": None}))
    )
    [first] = workbench.merge()
    workbench.land(
        table,
        tx(
            U(k=1, a="x", d="2024-01-01", n="0.10", **{"x y": None}),
            U(k=2, a="y", d=UNCHANGED, n="2.00", **{"x y": UNCHANGED}),
        ),
    )
    [second] = workbench.merge()

    assert (first.counts["misfits"], second.counts["misfits"]) == (6, 0)
    assert workbench.misfits(table) == [{"d": "infinity", "x y": "0044-03-15 00:00:00 BC"}]
    assert workbench.rows(table) == Counter(
        [
            ("1", "x", "2024-01-01", "0.10", None),
            ("2", "y", "infinity", "2.00", "0044-03-15 00:00:00 BC"),
            ("3", "x", None, "1.50", None),
        ]
    )


@pytest.mark.parametrize("way", ["changes", "copy", "bag"])
def test_a_misfit_pauses_the_table_where_the_pipeline_says_fail(workbench: Workbench, way: str) -> None:
    table = workbench.table(column("k", "int4", key=way != "bag"), column("d", "date"))
    if way == "copy":
        table.land_copy([{"k": 1, "d": "infinity"}])
    else:
        workbench.land(table, tx(I(k=1, d="infinity")))

    [result] = workbench.merge(on_misfit="fail")

    assert result.paused_slug == "misfit-refused"
    assert "infinity" not in result.paused_reason
    assert workbench.rows(table) == Counter()
