"""Landing files that are missing, damaged or of another contract end the application, never a part of the data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import urlparse

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


def test_the_table_is_whole_again_once_the_file_is(workbench: Workbench, landed: Table) -> None:
    whole = _path(landed).read_bytes()
    _path(landed).unlink()
    with pytest.raises(LakeError):
        workbench.merge()
    _path(landed).write_bytes(whole)

    workbench.merge()

    assert workbench.rows(landed) == Counter([("1", "one"), ("2", "two")])
