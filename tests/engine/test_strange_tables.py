"""Tables that DuckDB could misread: columns named as its own, none at all, or more than it likes in one expression."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.engine.order import LayoutField
from tests.engine.folder_lake import FolderLake
from tests.spark.histories import UNCHANGED, D, I, U, tx
from tests.spark.workbench import column

NAMES = (
    *("file_row_number", "file_index", "filename", "rowid", "penstock_partition", "penstock_partition_"),
    *("place", "id", "k0", "r0", "t0", "tm", "c1", "x1", "misfits", "first", "live", "net", "schema", "map"),
)
ROW = {name: f"{name}'s" for name in NAMES}


def test_columns_named_as_the_engine_names_its_own_are_merged(folder_lake: FolderLake) -> None:
    table = folder_lake.table(column("key", "int4", key=True), *(column(name) for name in NAMES))
    folder_lake.merge_of(table, tx(I(key=1, **ROW), I(key=2, **ROW)))
    changed = {**ROW, "rowid": None, "file_row_number": UNCHANGED, "k0": UNCHANGED}
    folder_lake.land(table, tx(U(key=1, **changed), D(key=2), I(key=3, **ROW)))

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    assert folder_lake.rows(table) == Counter(
        [("1", *{**ROW, "rowid": None}.values()), ("3", *ROW.values())],
    )


def test_a_bag_with_columns_named_as_the_engine_names_its_own_is_merged(folder_lake: FolderLake) -> None:
    table = folder_lake.table(*(column(name) for name in NAMES))
    folder_lake.merge_of(table, tx(I(**ROW), I(**ROW), I(**ROW)))
    folder_lake.land(table, tx(D(**ROW), D(**ROW)))

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    assert folder_lake.rows(table) == Counter([tuple(ROW.values())])


def test_a_partitioned_table_may_have_any_names(folder_lake: FolderLake) -> None:
    table = folder_lake.table(column("key", "int4", key=True), *(column(name) for name in NAMES))
    folder_lake.options["partition"] = (LayoutField(0, "bucket[2]"),)
    folder_lake.merge_of(table, tx(*(I(key=key, **ROW) for key in range(6))))
    folder_lake.land(table, tx(D(key=0), U(key=1, **{**ROW, "penstock_partition": "x"})))

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    found = folder_lake.rows(table)
    assert sum(found.values()) == 5
    assert found["1", *{**ROW, "penstock_partition": "x"}.values()] == 1


def test_a_table_without_columns_is_merged(folder_lake: FolderLake) -> None:
    table = folder_lake.table()
    folder_lake.merge_of(table, tx(I(), I(), I()))
    folder_lake.land(table, tx(D(), I(), D()))

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    assert folder_lake.rows(table) == Counter({(): 2})


@pytest.mark.slow
def test_a_table_of_1100_columns_is_merged(folder_lake: FolderLake) -> None:
    table = folder_lake.table(column("key", "int4", key=True), *(column(f"d{n}", "date") for n in range(1099)))
    row = {f"d{n}": "2024-02-29" for n in range(1099)}
    folder_lake.merge_of(table, tx(I(key=1, **row)))
    changed = {**row, "d7": UNCHANGED, "d1098": "infinity"}
    folder_lake.land(table, tx(U(key=1, **changed)))

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    assert folder_lake.rows(table) == Counter([("1", *{**row, "d1098": "infinity"}.values())])


def test_a_landing_folder_that_looks_like_a_hive_partition_adds_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "op=x" / "xid=7"
    folder.mkdir(parents=True)
    lake = FolderLake(folder)
    table = lake.table(column("k", "int4", key=True), column("op"))
    lake.merge_of(table, tx(I(k=1, op="a")))
    table.land_copy([{"k": "2", "op": "b"}])

    [result] = lake.merge()

    assert result.paused_reason is None
    assert lake.rows(table) == Counter([("2", "b")])


def test_a_key_of_an_array_with_nan_or_minus_zero_is_found_and_changed(folder_lake: FolderLake) -> None:
    table = folder_lake.table(column("k", "float8[]", key=True), column("a"))
    folder_lake.options = {"stop_on_conflict": True}
    folder_lake.merge_of(table, tx(I(k="{0}", a="x"), I(k="{NaN,-0}", a="nan"), I(k="{NaN}", a="gone")))
    folder_lake.land(table, tx(U(old={"k": "{0}"}, k="{-0}", a=UNCHANGED), U(k="{NaN,-0}", a="still"), D(k="{NaN}")))

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    assert sorted(row[1] or "" for row in folder_lake.rows(table)) == ["still", "x"]


def test_a_real_key_that_a_fetch_wrote_as_a_double_is_the_same_key(folder_lake: FolderLake) -> None:
    table = folder_lake.table(column("k", "float4", key=True), column("a"))
    folder_lake.options = {"stop_on_conflict": True}
    folder_lake.merge_of(table, tx(I(k="0.1", a="x")))
    folder_lake.land(table, tx(U(k="0.10000000149011612", a="fetched"), U(k="0.1", a="later")))

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    assert [row[1] for row in folder_lake.rows(table)] == ["later"]


def test_a_key_is_changed_from_zero_to_minus_zero_and_back(folder_lake: FolderLake) -> None:
    table = folder_lake.table(column("k", "float8", key=True), column("a"))
    folder_lake.merge_of(table, tx(I(k="0", a="zero"), I(k="NaN", a="nan"), I(k="-Infinity", a="low")))
    [first] = folder_lake.merge_of(
        table, tx(U(old={"k": "0"}, k="-0", a="minus"), U(k="NaN", a="still"), D(k="-Infinity"))
    )
    [second] = folder_lake.merge_of(table, tx(U(k="-0", a=UNCHANGED), U(old={"k": "-0"}, k="0", a="zero")))

    assert (first.paused_reason, second.paused_reason) == (None, None)
    assert sorted(row[1] or "" for row in folder_lake.rows(table)) == ["still", "zero"]


def test_a_column_that_no_landed_row_has_yet_is_written_as_texts(folder_lake: FolderLake) -> None:
    """A column of NULLs without a type cannot be read by Spark."""
    table = folder_lake.table(column("key", "int4", key=True))
    folder_lake.land(table, tx(I(key=1)))
    table.columns = (*table.columns, column("note"))

    folder_lake.merge()

    (path,) = table.data
    assert str(pq.read_schema(path.removeprefix("file://")).field("note").type) == "string"
