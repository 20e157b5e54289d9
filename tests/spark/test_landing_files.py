"""Landing files that are missing, damaged or of another contract end the application, never a part of the data."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import LakeError
from penstock.lake.plan import FileRef
from penstock.landing.schema import copy_schema
from penstock.landing.zone import LandingZone
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
        landed_copy(table, "values", {"k": "int", "day": "date", "l": "array<int>"}, (1, date(2024, 2, 29), [1, None])),
        landed_copy(table, "texts", {}, ("2", "infinity", "{}"), ("3", "2024-03-01", None)),
    ]

    [result] = workbench.merge()

    assert workbench.rows(table) == Counter(
        [("1", "2024-02-29", "{1,NULL}"), ("2", "infinity", "{}"), ("3", "2024-03-01", None)]
    )
    assert workbench.misfits(table) == [{"day": "infinity"}]
    assert (result.counts["rows_written"], result.counts["misfits"]) == (3, 1)


def test_a_copy_of_values_only_is_loaded_and_has_no_misfits(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int4", key=True), column("day", "date"))
    table.copy_files = [landed_copy(table, "values", {"k": "int", "day": "date"}, (1, date(2024, 2, 29)), (2, None))]

    [result] = workbench.merge()

    assert workbench.rows(table) == Counter([("1", "2024-02-29"), ("2", None)])
    assert (result.counts["rows_written"], result.counts["misfits"]) == (2, 0)


def test_values_of_a_type_that_the_lake_has_no_more_pause_the_table(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int8", key=True))
    table.copy_files = [landed_copy(table, "values", {"k": "int"}, (1,))]

    result = workbench.prepare()

    assert result.tables[0].paused_slug == "schema-change"
    assert "those of k have changed" in (result.tables[0].paused_reason or "")


def landed_copy(table: Table, name: str, typed: dict[str, str], *rows: tuple[Any, ...]) -> FileRef:
    """Land rows as a copy does, some columns as values."""
    zone, columns = LandingZone.open(table.folder.as_uri(), {}), [column.name for column in table.columns]
    writer = zone.copy_writer(f"{table.oid}-{name}.parquet", columns, typed)
    schema = copy_schema(columns, typed)
    images = pa.array([dict(zip(columns, row, strict=True)) for row in rows], schema.field("new").type)
    writer.write(pa.record_batch([images], schema=schema))
    entry = writer.close(oid=table.oid)
    return FileRef(
        zone.uri(entry.path), entry.rows, entry.bytes, entry.columns, inserts=entry.inserts, typed=entry.typed
    )
