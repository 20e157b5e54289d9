"""A driver's clock that is wrong stops its own run alone, and what an earlier one has left in the lake stops nobody."""

import time
from collections import Counter

import pytest

from penstock.errors import LakeError
from tests.clocks import HOUR, driver_clock, metadata_files, move_into_the_future, read, times
from tests.spark.histories import I, U, tx
from tests.spark.workbench import Table, Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("k", "int4", key=True), column("a"))


@pytest.fixture
def table(workbench: Workbench) -> Table:
    made = workbench.table(*COLUMNS)
    workbench.merge_of(made, tx(I(k=1, a="one")))
    return made


def test_tables_that_a_driver_with_its_clock_ahead_has_written_are_merged_and_have_no_future_then(
    workbench: Workbench, table: Table
) -> None:
    move_into_the_future(workbench.connect, workbench.namespace)
    workbench.land(table, tx(U(k=1, a="two"), I(k=2, a="two")))

    [result] = workbench.merge()

    assert result.paused_slug is None
    assert workbench.rows(table) == Counter([("1", "two"), ("2", "two")])
    now = time.time() * 1000
    found = {name: times(read(file)) for name, file in metadata_files(workbench.connect, workbench.namespace).items()}
    assert sorted(found) == sorted(["_penstock_cuts", table.target[-1]])
    assert all(each <= now for known in found.values() for each in known)
    workbench.merge_of(table, tx(U(k=2, a="three")))
    assert workbench.rows(table) == Counter([("1", "two"), ("2", "three")])


@pytest.mark.parametrize(("by", "said"), [(HOUR, "3600 s ahead"), (-HOUR, "3600 s behind")])
def test_a_driver_with_another_clock_than_the_catalogs_database_writes_nothing(
    workbench: Workbench, table: Table, by: int, said: str
) -> None:
    before = metadata_files(workbench.connect, workbench.namespace)
    workbench.land(table, tx(U(k=1, a="two")))

    with driver_clock(by), pytest.raises(LakeError, match=rf"^\[clock-skew\].*got {said}"):
        workbench.prepare()

    assert metadata_files(workbench.connect, workbench.namespace) == before
    workbench.merge()
    assert workbench.rows(table) == Counter([("1", "two")])


def test_what_is_staged_says_by_which_time_and_a_few_seconds_apart_are_as_good_as_none(
    workbench: Workbench, table: Table
) -> None:
    workbench.land(table, tx(U(k=1, a="two")))

    before = time.time() * 1000
    with driver_clock(20_000):
        result = workbench.prepare()

    assert result.cuts is not None
    stamps = [each.stamped for each in (result.cuts, *(found.pointer for found in result.tables)) if each is not None]
    assert len(stamps) == 2
    assert all(before <= (each or 0) <= time.time() * 1000 for each in stamps)
