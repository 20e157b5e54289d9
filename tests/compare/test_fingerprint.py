"""Fingerprints of heaps of rows: blind to order, not to repetition, and to nothing in a row."""

from collections.abc import Generator, Iterator, Sequence

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compare.fingerprint import RowHasher
from penstock.compare.report import ComparedTable
from penstock.compare.rows import fingerprint

Rows = list[tuple[str | None, str | None]]

cells = st.none() | st.sampled_from(["", "-", "1:", "0:", ":", "1:-", "2:-1", "a"])
heaps = st.lists(st.tuples(cells, cells), max_size=6)


@pytest.fixture(scope="module")
def hasher() -> Iterator[RowHasher]:
    with duckdb.connect() as database:
        yield RowHasher(database, ("x", "y"), ())


def batch(rows: Rows) -> pa.Table:
    return pa.table(
        {"x": [row[0] for row in rows], "y": [row[1] for row in rows]}, pa.schema({"x": pa.string(), "y": pa.string()})
    )


def sorted_rows(rows: Rows) -> list[str]:
    return sorted(map(repr, rows))


@settings(deadline=None, max_examples=40)
@given(one=heaps, other=heaps)
def test_two_heaps_are_equal_exactly_if_they_hold_the_same_rows_as_often(
    hasher: RowHasher, one: Rows, other: Rows
) -> None:
    prints = [hasher.fingerprint([batch(rows)]) for rows in (one, other)]
    assert (len(prints[0].differing(prints[1])) == 0) == (sorted_rows(one) == sorted_rows(other))


@settings(deadline=None, max_examples=40)
@given(one=heaps, other=heaps)
def test_the_differences_are_those_of_the_multisets(hasher: RowHasher, one: Rows, other: Rows) -> None:
    here, there = hasher.fingerprint([batch(one)]), hasher.fingerprint([batch(other)])
    counts, first = hasher.differences([batch(one)], [batch(other)], here.differing(there), first=3)
    left, extra = list(one), []
    for row in other:
        left.remove(row) if row in left else extra.append(row)
    assert counts == {kind: rows for kind, rows in (("missing", len(left)), ("extra", len(extra))) if rows}
    assert len(first) == min(3, len(left) + len(extra))


@given(rows=heaps, cut=st.integers(0, 6))
@settings(deadline=None, max_examples=40)
def test_order_and_batches_leave_no_trace(hasher: RowHasher, rows: Rows, cut: int) -> None:
    whole = hasher.fingerprint([batch(rows)])
    parts = hasher.fingerprint([batch(rows[cut:]), batch([]), batch(rows[:cut][::-1])])
    assert len(whole.differing(parts)) == 0
    assert whole.rows == len(rows)


def test_wide_rows_are_told_apart() -> None:
    rows = [{f"x{n}": str(n) for n in range(1600)}, {f"x{n}": str(n) for n in range(1599)}]
    with duckdb.connect() as database:
        wide = RowHasher(database, [f"x{n}" for n in range(1600)], (0,))
        here, there = (
            wide.fingerprint([pa.Table.from_pylist([row], pa.schema([(f"x{n}", pa.string()) for n in range(1600)]))])
            for row in rows
        )
    assert len(here.differing(there)) == 1


def test_the_rows_of_a_source_are_closed_when_they_cannot_be_hashed() -> None:
    closed = []

    def rows(table: ComparedTable, columns: Sequence[str]) -> Generator[pa.Table, None, None]:
        try:
            yield batch([("a", "b")])
        finally:
            closed.append(True)

    with pytest.raises(duckdb.Error) as raised:
        fingerprint(ComparedTable("public", "t", ("lake", "public", "t"), ("x", "y", "z")), rows)

    assert raised.traceback  # it holds the frames, so only who closes what is half read lets go of it
    assert closed == [True]
