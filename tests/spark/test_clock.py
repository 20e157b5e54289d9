"""A driver's clock that is wrong stops its own run alone, and what an earlier one has left in the lake stops nobody."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import LakeError
from penstock_spark import clock
from tests.spark.histories import I, U, tx
from tests.spark.workbench import Table, Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("k", "int4", key=True), column("a"))
HOUR = 3_600_000


@pytest.fixture
def table(workbench: Workbench) -> Table:
    made = workbench.table(*COLUMNS)
    workbench.land(made, tx(I(k=1, a="one")))
    workbench.merge()
    return made


def metadata_files(bench: Workbench) -> dict[tuple[str, str], str]:
    """Return the metadata file of each table of the bench, the table of cuts included."""
    query = """
        select table_namespace, table_name, metadata_location from iceberg_tables
        where table_namespace = %s or table_namespace like %s
        """
    with bench.connect() as connection:
        rows = connection.execute(query, (bench.namespace, f"{bench.namespace}.%")).fetchall()
    return {(namespace, name): location for namespace, name, location in rows}


def read(location: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(location.removeprefix("file:")).read_text())
    return found


def times(metadata: dict[str, Any]) -> list[int]:
    """Return every time of a table's metadata."""
    listed = [each["timestamp-ms"] for name in ("snapshots", "snapshot-log", "metadata-log") for each in metadata[name]]
    return [metadata["last-updated-ms"], *listed]


def move_into_the_future(bench: Workbench) -> None:
    """Leave all tables as a driver does whose clock is an hour ahead."""
    for (namespace, name), location in metadata_files(bench).items():
        metadata = read(location)
        metadata["last-updated-ms"] += HOUR
        for each in (*metadata["snapshots"], *metadata["snapshot-log"]):
            each["timestamp-ms"] += HOUR
        ahead = location.replace(".metadata.json", "-ahead.metadata.json")
        Path(ahead.removeprefix("file:")).write_text(json.dumps(metadata))
        with bench.connect() as connection:
            connection.execute(
                "update iceberg_tables set metadata_location = %s where table_namespace = %s and table_name = %s",
                (ahead, namespace, name),
            )


def test_tables_that_a_driver_with_its_clock_ahead_has_written_are_merged_and_have_no_future_then(
    workbench: Workbench, table: Table
) -> None:
    move_into_the_future(workbench)
    workbench.land(table, tx(U(k=1, a="two"), I(k=2, a="two")))

    [result] = workbench.merge()

    assert result.paused_slug is None
    assert workbench.rows(table) == Counter([("1", "two"), ("2", "two")])
    now = time.time() * 1000
    found = {name: times(read(location)) for (_, name), location in metadata_files(workbench).items()}
    assert sorted(found) == sorted(["_penstock_cuts", table.target[-1]])
    assert all(each <= now for known in found.values() for each in known)
    workbench.land(table, tx(U(k=2, a="three")))
    workbench.merge()
    assert workbench.rows(table) == Counter([("1", "two"), ("2", "three")])


@pytest.mark.parametrize(("by", "said"), [(HOUR, "3600 s ahead"), (-HOUR, "3600 s behind")])
def test_a_driver_with_another_clock_than_the_catalogs_database_writes_nothing(
    workbench: Workbench, table: Table, monkeypatch: pytest.MonkeyPatch, by: int, said: str
) -> None:
    before = metadata_files(workbench)
    workbench.land(table, tx(U(k=1, a="two")))
    right = clock.now

    monkeypatch.setattr(clock, "now", lambda: right() + by)
    with pytest.raises(LakeError, match=rf"^\[clock-skew\].*got {said}"):
        workbench.prepare()
    monkeypatch.setattr(clock, "now", right)

    assert metadata_files(workbench) == before
    workbench.merge()
    assert workbench.rows(table) == Counter([("1", "two")])


def test_what_is_staged_says_by_which_time_and_a_few_seconds_apart_are_as_good_as_none(
    workbench: Workbench, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench.land(table, tx(U(k=1, a="two")))
    right = clock.now
    monkeypatch.setattr(clock, "now", lambda: right() + 20_000)

    before = time.time() * 1000
    result = workbench.prepare()

    assert result.cuts is not None
    stamps = [each.stamped for each in (result.cuts, *(found.pointer for found in result.tables)) if each is not None]
    assert len(stamps) == 2
    assert all(before <= (each or 0) <= time.time() * 1000 for each in stamps)
