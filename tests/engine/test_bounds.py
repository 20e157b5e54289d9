"""Which rows lie within the bounds of partitions, by DuckDB; the server says the same in `tests/source/test_rows_of_partitions.py`."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine import duck
from penstock.engine.changes import within
from penstock.engine.files import Files
from penstock.engine.order import Column, Layout, MergeOrder, Resources
from penstock.errors import LakeError

TYPES = {"n": "int", "i": "bigint", "d": "date", "t": "timestamp_ntz", "z": "timestamp", "s": "string"}
COLUMNS = tuple(Column(name, type_, (number,)) for number, (name, type_) in enumerate(TYPES.items(), start=1))
ORDER = MergeOrder(COLUMNS, (), (), (), Layout("file:///t"))
ROWS = (
    "(1, 0, date '2024-01-01', timestamp '2024-01-01 00:00:00', timestamptz '2024-01-01 00:00:00+00', 'a')",
    "(2, 9, date '2024-01-31', timestamp '2024-01-01 23:59:59', timestamptz '2024-01-02 00:00:00+00', 'it''s')",
    "(3, 10, date '2024-02-01', timestamp '2024-01-02 00:00:00', timestamptz '2024-01-03 00:00:00+00', '')",
    "(4, null, null, null, null, null)",
)
FIRST, SECOND = ["i", "int", "0", "9", None], ["i", "int", "9", None, None]


@pytest.mark.parametrize(
    ("bounds", "found", "used"),
    [
        pytest.param([], [], [], id="none"),
        pytest.param([[FIRST]], [1], [1], id="a range"),
        pytest.param([[SECOND]], [2, 3], [1], id="without a last value"),
        pytest.param([[["i", "int", None, "9", None]]], [1], [1], id="without a first value"),
        pytest.param([[["i", "int", None, None, None]]], [1, 2, 3], [1], id="of any value"),
        pytest.param([[FIRST], [SECOND]], [1, 2, 3], [1], id="one or the other"),
        pytest.param([[SECOND, ["s", "text", None, None, ["a", ""]]]], [3], [1, 5], id="of two levels"),
        pytest.param([[["s", "text", None, None, ["it's"]]]], [2], [5], id="a list"),
        pytest.param([[["d", "date", "2024-01-01", "2024-02-01", None]]], [1, 2], [2], id="dates"),
        pytest.param([[["t", "timestamp", "2024-01-01 23:59:59", None, None]]], [2, 3], [3], id="moments"),
        pytest.param([[["z", "instant", None, "2024-01-02 01:00:00+01", None]]], [1], [4], id="moments of a zone"),
    ],
)
def test_a_row_lies_within_bounds_or_it_does_not(bounds: Any, found: list[int], used: list[int]) -> None:
    condition, asked = within(ORDER, bounds, lambda place: COLUMNS[place].name)

    with duck.connect(Resources(), Files()) as db:
        rows = db.rows(f"select n, {condition} from (values {', '.join(ROWS)}) r({', '.join(TYPES)}) order by n")

    assert rows == [(n, n in found) for n in (1, 2, 3, 4)]
    assert asked == used


def test_a_column_that_compares_otherwise_in_the_lake_is_refused() -> None:
    with pytest.raises(LakeError, match=r"schema-change.*expected column s.* as int or bigint, it is string"):
        within(ORDER, [[["s", "int", "0", "9", None]]], lambda place: COLUMNS[place].name)
