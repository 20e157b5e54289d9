"""A batch over many tasks: how it is divided, and that it counts and refuses as one task does (what it leads to: test_histories)."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.contract.manifest import FileRef
from penstock.engine import task
from penstock.engine.order import Column, Layout, MergeOrder, TargetFile
from penstock.engine.task import Shape
from tests.engine.folder_lake import FolderLake
from tests.spark import merged_histories
from tests.spark.histories import UNCHANGED, D, Event, I, U, tx
from tests.spark.random_histories import KeyedHistories
from tests.spark.workbench import column

KEYED = MergeOrder((Column("k", "int", (1,), key=True),), (), (), (), Layout("file:///t"), identity="d")
WITHOUT_KEY, COPIED = replace(KEYED, columns=()), replace(KEYED, copy=True)
MILLION = 1 << 20


def order(like: MergeOrder, landed: tuple[int, ...], target: tuple[int, ...] = ()) -> MergeOrder:
    """Return such an order of files of so many rows each."""
    files = tuple(FileRef(f"{at}", rows, 0, ()) for at, rows in enumerate(landed))
    return replace(like, landed=files, target=tuple(TargetFile(f"{at}", rows) for at, rows in enumerate(target)))


@pytest.mark.parametrize(
    ("wanted", "slots", "shape"),
    [
        pytest.param(order(KEYED, ()), 8, Shape(), id="nothing"),
        pytest.param(order(KEYED, (4 * MILLION,), (9, 9)), 8, Shape(1, 1, 4), id="changes of one task"),
        pytest.param(order(KEYED, (4 * MILLION, 1), (9, 9)), 8, Shape(2, 1, 5), id="one change more"),
        pytest.param(order(KEYED, (1,), (32 * MILLION,) * 3), 8, Shape(1, 3, 1), id="three tasks' rows of the table"),
        pytest.param(order(KEYED, (1,), (32 * MILLION,) * 3), 2, Shape(1, 2, 1), id="and two tasks at once"),
        pytest.param(order(KEYED, (16 * MILLION,), (99 * MILLION,) * 3), 8, Shape(4, 2, 8), id="many of both"),
        pytest.param(order(KEYED, (16 * MILLION,), (99 * MILLION,)), 8, Shape(4, 1, 8), id="in one file of the table"),
        pytest.param(
            order(KEYED, (20 * MILLION,), (99 * MILLION,) * 3), 3, Shape(3, 1, 3), id="more than tasks at once"
        ),
        pytest.param(order(COPIED, (9 * MILLION, 9 * MILLION)), 8, Shape(writers=2), id="a copy of two files"),
        pytest.param(order(COPIED, ()), 8, Shape(), id="a copy of nothing"),
        pytest.param(
            order(replace(WITHOUT_KEY, identity="n"), (2 * MILLION,)), 8, Shape(writers=2), id="inserts alone"
        ),
        pytest.param(order(replace(WITHOUT_KEY, identity="f"), (2 * MILLION,)), 8, Shape(), id="whole rows"),
    ],
)
def test_a_batch_is_spread_by_its_rows_and_the_tasks_there_are(wanted: MergeOrder, slots: int, shape: Shape) -> None:
    assert task.shape_of(wanted, slots) == shape


@pytest.mark.parametrize(
    ("like", "rows", "groups"),
    [
        (COPIED, (2, 2, 2, 2), [[(0, None), (1, None)], [(2, None), (3, None)]]),
        (COPIED, (0, 0), [[(0, None), (1, None)]]),
        (COPIED, (9, 0), [[(0, None)], [(1, None)]]),
        (KEYED, (2, 2, 2, 2), [[(0, (0, 2)), (1, (0, 2))], [(2, (0, 2)), (3, (0, 2))]]),
        (KEYED, (1, 4, 2), [[(0, (0, 1)), (1, (0, 2))], [(1, (2, 4)), (2, (0, 2))]]),
        (KEYED, (0, 3, 0), [[(1, (0, 1))], [(1, (1, 3))]]),
    ],
    ids=["a copy", "an empty copy", "a copy with an empty end", "even files", "odd files", "empty files"],
)
def test_landed_rows_are_divided_evenly(like: MergeOrder, rows: tuple[int, ...], groups: list[list[object]]) -> None:
    found = task._landed_groups(order(like, rows), 2)

    assert [[(int(each.uri), each.only) for each in group] for group in found] == groups


@pytest.mark.slow
def test_a_split_batch_counts_as_one_task_does(tmp_path: Path) -> None:
    counts = []
    for name, shape in (("one", None), ("many", Shape(3, 2, 2))):
        (tmp_path / name).mkdir()
        lake = FolderLake(tmp_path / name, shape=shape)
        source, table = KeyedHistories(20266, 60, full=False), lake.table(*merged_histories.COLUMNS)
        for _ in range(2):
            [result] = lake.merge_of(table, *source.transactions(200))
            counts.append(result.counts)

    assert counts[:2] == counts[2:]
    assert counts[1]["rows_deleted"] > 0


@pytest.mark.parametrize(
    ("option", "event", "slug"),
    [("stop_on_conflict", D(k=7), "merge-conflict"), ("stop_on_misfit", I(k=7, d="infinity"), "misfit-refused")],
)
def test_a_split_batch_pauses_its_table_where_the_pipeline_says_fail(
    folder_lake: FolderLake, option: str, event: Event, slug: str
) -> None:
    table = folder_lake.table(column("k", "int4", key=True), column("d", "date"))
    folder_lake.shape = Shape(3, 1, 2)
    folder_lake.merge_of(table, tx(*(I(k=100 + n, d="2024-01-01") for n in range(20))))
    before = folder_lake.rows(table)
    folder_lake.options[option] = True
    folder_lake.land(table, tx(event, *(I(k=200 + n, d=None) for n in range(20))))

    [result] = folder_lake.merge()

    assert result.paused_slug == slug
    assert folder_lake.rows(table) == before


def test_minus_zero_and_zero_are_one_key_of_a_split_batch(folder_lake: FolderLake) -> None:
    table = folder_lake.table(column("k", "float8", key=True), column("a"))
    folder_lake.shape = Shape(3, 1, 2)
    folder_lake.merge_of(
        table, tx(I(k="0", a="zero"), I(k="NaN", a="nan"), *(I(k=str(n), a="x") for n in range(1, 20)))
    )
    folder_lake.land(table, tx(U(old={"k": "0"}, k="-0", a=UNCHANGED), U(k="NaN", a="still"), D(k="7")))

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    assert Counter(row[1] for row in folder_lake.rows(table).elements()) == {"x": 18, "zero": 1, "still": 1}
