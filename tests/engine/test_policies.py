"""What the pipeline file says about rows and values that do not fit: continue, or pause that table only."""

from collections import Counter

import pytest

from penstock.engine.task import Shape
from tests.engine.folder_lake import FolderLake
from tests.spark.histories import UNCHANGED, D, Event, I, U, tx
from tests.spark.workbench import column

COLUMNS = (column("k", "int4", key=True), column("a"), column("d", "date"))
START = tx(I(k=1, a="one", d="2024-01-01"), I(k=2, a="two", d=None))


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([D(k=7)], "delete_missing 1"),
        ([U(k=7, a="x", d=None)], "update_missing 1"),
        ([I(k=1, a="x", d=None)], "insert_existing 1"),
        ([I(k=1, a="x", d=None), D(k=7)], "delete_missing 1, insert_existing 1"),  # together they cancel out
    ],
)
def test_a_conflict_pauses_the_table_where_the_pipeline_says_fail(
    folder_lake: FolderLake, events: list[Event], reason: str
) -> None:
    table = folder_lake.table(*COLUMNS)
    folder_lake.merge_of(table, START)
    before = folder_lake.rows(table)
    folder_lake.options["stop_on_conflict"] = True
    folder_lake.land(table, tx(*events))

    [result] = folder_lake.merge()

    assert result.paused_slug == "merge-conflict"
    assert reason in str(result.paused_reason)
    assert folder_lake.rows(table) == before


def test_changes_without_a_conflict_pass_where_the_pipeline_says_fail(folder_lake: FolderLake) -> None:
    table = folder_lake.table(*COLUMNS)
    folder_lake.options["stop_on_conflict"] = True
    folder_lake.merge_of(table, START)
    folder_lake.land(table, tx(I(k=3, a="x", d=None), U(k=3, a="y", d=UNCHANGED), U(k=1, a=UNCHANGED, d=None), D(k=2)))

    [result] = folder_lake.merge()

    assert result.paused_slug is None
    assert folder_lake.rows(table) == Counter([("1", "one", None), ("3", "y", None)])


def test_a_missing_row_of_a_bag_pauses_the_table_where_the_pipeline_says_fail(folder_lake: FolderLake) -> None:
    table = folder_lake.table(column("a"))
    folder_lake.merge_of(table, tx(I(a="x")))
    folder_lake.options["stop_on_conflict"] = True
    folder_lake.land(table, tx(D(True, a="x"), D(True, a="x")))

    [result] = folder_lake.merge()

    assert (result.paused_slug, folder_lake.rows(table)) == ("merge-conflict", Counter([("x",)]))


def test_misfits_that_a_row_keeps_from_the_lake_are_not_counted_again(folder_lake: FolderLake) -> None:
    table = folder_lake.table(*COLUMNS, column("at", "timestamp"))
    far = {"d": "infinity", "at": "0044-03-15 00:00:00 BC"}
    [first] = folder_lake.merge_of(table, tx(I(k=1, a="x", **far), I(k=2, a="x", **far)))
    [second] = folder_lake.merge_of(
        table, tx(U(k=1, a="y", d=UNCHANGED, at=UNCHANGED), U(k=2, a="y", d="-infinity", at=UNCHANGED))
    )

    assert (first.counts["misfits"], second.counts["misfits"]) == (4, 1)
    assert folder_lake.rows(table) == Counter([("1", "y", "infinity", far["at"]), ("2", "y", "-infinity", far["at"])])


@pytest.mark.parametrize("way", ["changes", "copy", "bag"])
def test_a_misfit_pauses_the_table_where_the_pipeline_says_fail(folder_lake: FolderLake, way: str) -> None:
    table = folder_lake.table(column("k", "int4", key=way != "bag"), column("d", "date"))
    folder_lake.options["stop_on_misfit"] = True
    if way == "copy":
        table.land_copy([{"k": 1, "d": "infinity"}])
    else:
        folder_lake.land(table, tx(I(k=1, d="infinity")))

    [result] = folder_lake.merge()

    assert result.paused_slug == "misfit-refused"
    assert "infinity" not in str(result.paused_reason)
    assert folder_lake.rows(table) == Counter()


@pytest.mark.parametrize("shape", [None, Shape(2, 2, 2)], ids=["by one task", "by many tasks"])
@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([I(k=3, a="x", d=None), I(k=3, a="y", d=None)], "insert_existing 1"),
        ([I(k=3, a="x", d=None), I(k=3, a="y", d=None), D(k=3)], "insert_existing 1"),
        ([U(old={"k": 1}, k=2, a=UNCHANGED, d=None), U(k=2, a="y", d=None)], "insert_existing 1"),
        (
            [I(k=3, a="x", d=None), U(old={"k": 3}, k=4, a=UNCHANGED, d=None), I(k=4, a="z", d=None)],
            "insert_existing 1",
        ),
        ([D(k=1), D(k=1)], "delete_missing 1"),
        ([D(k=1), U(k=1, a="x", d=None)], "update_missing 1"),
    ],
)
def test_rows_of_one_key_that_a_batch_has_at_once_are_a_conflict(
    folder_lake: FolderLake, events: list[Event], reason: str, shape: Shape | None
) -> None:
    """What a source sends whose unique index is broken: within a batch nothing of the lake's contradicts it."""
    folder_lake.shape = shape
    table = folder_lake.table(*COLUMNS)
    folder_lake.merge_of(table, START)
    folder_lake.options["stop_on_conflict"] = True
    folder_lake.land(table, tx(*events))

    [result] = folder_lake.merge()

    assert (result.paused_slug, reason in str(result.paused_reason)) == ("merge-conflict", True), result.paused_reason
