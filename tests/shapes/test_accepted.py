"""What is open of an accepted shape: partitions that went, and values that were fetched since a change landed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.contract.manifest import ChangeCounts, FileEntry
from penstock.lsn import Lsn
from penstock.shapes.accepted import (
    Accepted,
    GonePartition,
    gone_partitions,
    lost_partitions,
    taken_again,
    with_gone,
)
from penstock.shapes.mapping import Fit, fetched_fit, overwritten
from penstock.shapes.partition_bounds import Condition
from tests.shapes.tables import load_record, planned, source_table, table_record
from tests.shapes.test_leaves_read import PARTED


def gone(oid: int, low: int, high: int, lsn: int | None, **other: Any) -> GonePartition:
    bound = (Condition(1, "int", str(low), str(high)),)
    return GonePartition(oid, f"p{oid}", bound, None if lsn is None else Lsn(lsn), **other)


FIRST, SECOND, OPEN = gone(8, 80, 90, 5), gone(9, 90, 99, 7), gone(10, 100, 110, None)
KEPT = gone(11, 110, 120, 6, kept=True)
FOUR = Accepted(PARTED.shape, gone=(SECOND, FIRST, OPEN, KEPT))


def test_partitions_are_leaving_from_their_place_on_and_those_that_are_kept_are_not() -> None:
    assert FOUR.leaving == (SECOND, FIRST, OPEN)
    assert FOUR.kept == (KEPT,)
    assert FOUR.leaving_after(Lsn(4)) == (SECOND, FIRST)
    assert FOUR.leaving_after(Lsn(5)) == (SECOND,)


@pytest.mark.parametrize(
    ("through", "stay"),
    [
        (None, (SECOND, FIRST, OPEN, KEPT)),
        (4, (SECOND, FIRST, OPEN, KEPT)),
        (5, (SECOND, FIRST, OPEN, KEPT)),
        (7, (FIRST, OPEN, KEPT)),
    ],
    ids=["no cut", "before all", "through one, the first", "through two"],
)
def test_of_partitions_that_cuts_let_go_the_first_is_kept_in_mind(through: int | None, stay: tuple[Any, ...]) -> None:
    more = gone(12, 0, 1, 9)

    assert with_gone(FOUR, [more], None if through is None else Lsn(through)) == (*stay, more)


def test_partitions_that_are_empty_or_have_another_file_are_named() -> None:
    now = replace(PARTED, leaves=PARTED.leaves[:2])
    empty, missing = gone_partitions(PARTED.shape, now, {2: "10:10:", 99: "10:10:"})

    assert (empty.oid, empty.file, empty.snapshot) == (2, 2, "10:10:")
    assert (missing.oid, missing.file, missing.snapshot) == (3, 3, None)
    assert lost_partitions(PARTED.shape, {1: 1, 2: None}) == ["p3"]
    assert lost_partitions(PARTED.shape, {1: 9, 2: 2, 3: 3}) == ["p1"]


TRUNCATED, ACROSS = gone(2, 10, 20, 9, snapshot="10:10:"), gone(7, 5, 15, 9)


@pytest.mark.parametrize(
    ("away", "taken", "since", "found"),
    [
        ((TRUNCATED, ACROSS), [2], 8, [(TRUNCATED, "10:10:"), (ACROSS, None)]),
        ((TRUNCATED, ACROSS), [1], 8, [(ACROSS, None)]),
        ((TRUNCATED, ACROSS), [3, 99], 8, []),
        ((TRUNCATED, ACROSS), [2], 9, []),
        ((replace(TRUNCATED, snapshot=None),), [2], 8, [(replace(TRUNCATED, snapshot=None), None)]),
    ],
    ids=["in it, and within the bounds", "within the bounds", "elsewhere", "its rows went", "detached and attached"],
)
def test_rows_that_came_into_the_bounds_of_a_partition_that_is_to_go_are_noticed(
    away: tuple[GonePartition, ...], taken: list[int], since: int, found: list[Any]
) -> None:
    assert list(taken_again(Accepted(PARTED.shape, gone=away), taken, Lsn(since))) == found


ENTRY = FileEntry("x", 100, 0, 1, 1, None, None, ("id", "name"), ChangeCounts(), attnums=(1, 2))
FETCH = load_record(100, "t", state="landed", attnums=(2,), whole=True, lsn=Lsn(20), files=(ENTRY,))


@pytest.mark.parametrize(
    ("fetch", "last", "columns"),
    [
        (FETCH, 18, {2}),
        (FETCH, 19, set()),
        (FETCH, None, set()),
        (replace(FETCH, oid=101), 18, set()),
        (replace(FETCH, whole=False), 18, set()),
        (replace(FETCH, state="copying"), 18, set()),
    ],
    ids=["before the fetch", "at its place", "no change", "of another table", "of some rows", "not landed yet"],
)
def test_values_that_were_fetched_count_for_all_changes_before(fetch: Any, last: int | None, columns: set[int]) -> None:
    assert overwritten([fetch], 100, last) == columns


def test_fetched_values_stand_under_the_lakes_names_and_come_by_the_key_of_their_time() -> None:
    table = source_table()
    known = table_record(100, "t", columns=planned(table), accepted=Accepted(table.shape))

    assert fetched_fit(known, ENTRY, [FETCH], ()) == Fit(("id", None))
    assert fetched_fit(known, ENTRY, [replace(FETCH, attnums=(1,))], ()).reason is not None, "by a key that it lacks"
    assert fetched_fit(known, replace(ENTRY, attnums=(1,)), [], {1}).reason is not None, "and was overwritten"
