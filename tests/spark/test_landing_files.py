"""Landing files that are missing, damaged or of another contract end the application, never a part of the data."""

from collections import Counter
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import LakeError
from tests.spark.histories import I, tx
from tests.spark.workbench import Table, Workbench, column

pytestmark = pytest.mark.spark


@pytest.fixture
def landed(workbench: Workbench) -> Table:
    table = workbench.table(column("k", "int4", key=True), column("a"))
    workbench.land(table, tx(I(k=1, a="one")))
    workbench.land(table, tx(I(k=2, a="two")))
    return table


def _path(table: Table) -> Path:
    return Path(urlparse(table.files[0].uri).path)


def test_a_missing_file_is_named(workbench: Workbench, landed: Table) -> None:
    _path(landed).unlink()

    with pytest.raises(LakeError, match=r"landing-file-missing.*parquet"):
        workbench.merge()


def test_a_file_cut_short_is_named(workbench: Workbench, landed: Table) -> None:
    whole = _path(landed).read_bytes()
    _path(landed).write_bytes(whole[: len(whole) // 2])

    with pytest.raises(LakeError, match=r"landing-file-missing.*parquet"):
        workbench.merge()


def test_a_file_of_another_contract_version_is_refused(workbench: Workbench, landed: Table) -> None:
    rows = pq.read_table(_path(landed))
    pq.write_table(rows.replace_schema_metadata({b"penstock.contract": b"2"}), _path(landed))

    with pytest.raises(LakeError, match=r"landing-version.*got 2 instead"):
        workbench.merge()


def test_changes_in_the_place_of_a_copys_rows_are_refused(workbench: Workbench, landed: Table) -> None:
    landed.files, landed.copy_files = [], landed.files

    with pytest.raises(LakeError, match=r"landing-version.*version 3, got 1 instead"):
        workbench.merge()


def test_the_table_is_whole_again_once_the_file_is(workbench: Workbench, landed: Table) -> None:
    whole = _path(landed).read_bytes()
    _path(landed).unlink()
    with pytest.raises(LakeError):
        workbench.merge()
    _path(landed).write_bytes(whole)

    workbench.merge()

    assert workbench.rows(landed) == Counter([("1", "one"), ("2", "two")])


def test_a_copys_values_and_texts_become_one_table(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int4", key=True), column("day", "date"), column("l", "int4[]"))
    table.copy_files = [
        table.copied("values", texts(k=["1"], day=["2024-02-29"], l=["{1,NULL}"])),
        table.copied("texts", texts(k=["2", "3"], day=["infinity", "2024-03-01"], l=["{}", None]), values=False),
    ]

    [result] = workbench.merge()

    assert workbench.rows(table) == Counter(
        [("1", "2024-02-29", "{1,NULL}"), ("2", "infinity", "{}"), ("3", "2024-03-01", None)]
    )
    assert workbench.misfits(table) == [{"day": "infinity"}]
    assert (result.counts["rows_written"], result.counts["misfits"]) == (3, 1)


def test_a_copy_of_values_only_is_loaded_and_has_no_misfits(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int4", key=True), column("day", "date"))
    table.copy_files = [table.copied("values", texts(k=["1", "2"], day=["2024-02-29", None]))]

    [result] = workbench.merge()

    assert workbench.rows(table) == Counter([("1", "2024-02-29"), ("2", None)])
    assert (result.counts["rows_written"], result.counts["misfits"]) == (2, 0)


def test_values_of_a_type_that_the_lake_has_no_more_pause_the_table(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int4", key=True))
    table.copy_files = [table.copied("values", texts(k=["1"]))]
    table.columns = (column("k", "date", key=True),)

    result = workbench.prepare()

    assert result.tables[0].paused_slug == "schema-change"
    assert "those of k have changed" in (result.tables[0].paused_reason or "")


def test_values_of_a_narrower_type_than_the_lake_has_now_are_taken(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int4", key=True))
    table.copy_files = [table.copied("values", texts(k=["1"]))]
    table.columns = (column("k", "int8", key=True),)

    [result] = workbench.merge()

    assert result.paused_reason is None
    assert len(workbench.rows(table)) == 1


def texts(**columns: list[str | None]) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(each, pa.string()) for name, each in columns.items()})
