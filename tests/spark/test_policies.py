"""What the pipeline file says about rows and values that do not fit reaches the tasks; tests/engine has every case."""

from collections import Counter

import pytest

from tests.spark.histories import UNCHANGED, D, I, U, tx
from tests.spark.workbench import Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("k", "int4", key=True), column("a"), column("d", "date"))
START = tx(I(k=1, a="one", d="2024-01-01"), I(k=2, a="two", d=None))


def test_a_conflict_pauses_the_table_where_the_pipeline_says_fail(workbench: Workbench) -> None:
    table, other = workbench.table(*COLUMNS), workbench.table(*COLUMNS)
    for each in (table, other):
        workbench.land(each, START)
    workbench.merge()
    before = workbench.rows(table)
    workbench.land(table, tx(D(k=7)))
    workbench.land(other, tx(D(k=1)))

    results = workbench.merge(on_conflict="fail")

    assert [result.paused_slug for result in results] == ["merge-conflict", None]
    assert "delete_missing 1" in str(results[0].paused_reason)
    assert (workbench.rows(table), len(workbench.rows(other))) == (before, 1)


def test_a_misfit_pauses_the_table_where_the_pipeline_says_fail(workbench: Workbench) -> None:
    table, copied = workbench.table(*COLUMNS), workbench.table(*COLUMNS)
    workbench.land(table, tx(I(k=1, a="x", d="infinity")))
    copied.land_copy([{"k": 1, "a": "x", "d": "infinity"}])

    results = workbench.merge(on_misfit="fail")

    assert [result.paused_slug for result in results] == ["misfit-refused", "misfit-refused"]
    assert "infinity" not in "".join(str(result.paused_reason) for result in results)
    assert workbench.rows(table) == workbench.rows(copied) == Counter()


def test_misfits_are_kept_next_to_the_row_until_the_value_fits(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS, column("n", "numeric(4,2)"), column("x y", "timestamp"))
    far = {"d": "infinity", "n": "NaN", "x y": "0044-03-15 00:00:00 BC"}
    [first] = workbench.merge_of(
        table, tx(I(k=1, a="x", **far), I(k=2, a="x", **far), I(k=3, a="x", d=None, n="1.50", **{"x y": None}))
    )
    [second] = workbench.merge_of(
        table,
        tx(
            U(k=1, a="x", d="2024-01-01", n="0.10", **{"x y": None}),
            U(k=2, a="y", d=UNCHANGED, n="2.00", **{"x y": UNCHANGED}),
        ),
    )

    assert (first.counts["misfits"], second.counts["misfits"]) == (6, 0)
    assert workbench.misfits(table) == [{"d": "infinity", "x y": "0044-03-15 00:00:00 BC"}]
    assert workbench.rows(table) == Counter(
        [
            ("1", "x", "2024-01-01", "0.10", None),
            ("2", "y", "infinity", "2.00", "0044-03-15 00:00:00 BC"),
            ("3", "x", None, "1.50", None),
        ]
    )
