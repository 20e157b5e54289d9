"""Tables whose task Spark runs in a Python worker: orders, answers and failures travel as data."""

from collections import Counter
from pathlib import Path

import pytest

from penstock.engine import task
from penstock.errors import LakeError
from penstock_spark import batch as spark_batch
from penstock_spark import executors
from tests.spark import merged_histories
from tests.spark.histories import UNCHANGED, D, I, U, tx
from tests.spark.workbench import Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("k", "int4", key=True), column("a"), column("d", "date"))


@pytest.fixture(autouse=True)
def handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_batch, "stays_in_driver", lambda *sizes: False)


def test_a_table_is_merged_by_an_executor_as_by_the_driver(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS)
    table.land_copy([{"k": 1, "a": "one", "d": "infinity"}, {"k": 2, "a": "two", "d": None}])
    workbench.merge()
    workbench.land(table, tx(U(k=1, a="x", d=UNCHANGED), D(k=2), I(k=3, a="three", d="2024-02-29")))

    [result] = workbench.merge()

    assert result.paused_slug is None
    assert (result.counts["rows_deleted"], result.counts["rows_written"]) == (2, 2)
    assert workbench.rows(table) == Counter([("1", "x", "infinity"), ("3", "three", "2024-02-29")])


def test_a_table_that_is_split_over_executors_ends_as_the_judge_says(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in ("KEY_ROWS", "TARGET_ROWS", "WRITTEN_ROWS"):
        monkeypatch.setattr(task, size, 1)
    monkeypatch.setattr(executors, "slots", lambda context: 3)

    for batch in merged_histories.keyed(workbench, 20264, histories=60, batches=2, per_batch=150, full=False):
        assert batch.found == batch.expected, batch.name


def test_a_package_that_an_executor_lacks_ends_the_run_by_name(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "PACKAGES", ("duckdb", "pyarrow"))
    monkeypatch.setattr(executors.metadata, "version", lambda package: "0.1")  # of the driver, not of the executors
    table = workbench.table(*COLUMNS)
    workbench.land(table, tx(I(k=1, a="one", d=None)))

    with pytest.raises(LakeError, match=r"got executor .* without duckdb 0\.1; install") as caught:
        workbench.prepare()

    assert caught.value.slug == "spark-failed"


def test_a_refusal_on_an_executor_pauses_its_table_with_the_reason(workbench: Workbench) -> None:
    table, other = workbench.table(*COLUMNS), workbench.table(*COLUMNS)
    workbench.land(table, tx(U(k=7, a="x", d=UNCHANGED)))
    workbench.land(other, tx(I(k=1, a="one", d=None)))

    results = workbench.merge()

    assert [result.paused_slug for result in results] == ["divergence", None]
    assert workbench.rows(other) == Counter([("1", "one", None)])


def test_a_file_that_is_gone_pauses_its_table_by_name_and_says_no_value(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS)
    workbench.merge_of(table, tx(I(k=1, a="secret of a row", d=None)))
    [(path,)] = workbench.session().sql(f"select file_path from {workbench.name(table)}.data_files").collect()
    Path(path.removeprefix("file:")).unlink()
    workbench.land(table, tx(U(k=1, a="another secret", d=None)))

    [result] = workbench.prepare().tables

    assert result.paused_slug == "lake-unreadable"
    assert "IOException" in str(result.paused_reason)
    assert "secret" not in str(result.paused_reason)
