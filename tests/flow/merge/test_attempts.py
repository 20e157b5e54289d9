"""How far a merge is: what Spark's driver says in the landing zone comes to whoever watches."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.contract.manifest import ChangeCounts, FileRef
from penstock.flow import spark_job
from penstock.flow.merge.attempts import watched
from penstock.landing.zone import LandingZone
from penstock_spark import progress
from penstock_spark.progress import Progress
from tests.waiting import wait_until


def order(rows: int) -> Any:
    file = FileRef("uri", rows, 1, ("id",), ChangeCounts(0, 0, 0))
    return SimpleNamespace(files=(file,), copy_files=None)


def test_a_merge_is_as_far_as_its_tables_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_job, "EVERY_SECONDS", 0.001)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    orders, seen = [order(300), order(100)], []
    plan: Any = SimpleNamespace(
        tables=orders, landing_uri=str(tmp_path), landing_options={}, pipeline="p", attempt="attempt"
    )
    zone = LandingZone.open(str(tmp_path), {})
    ctx: Any = SimpleNamespace(name="p", landing=zone, is_watched=True, stage=lambda *said: seen.append(said))

    with watched(ctx, "attempt"):
        Progress(plan, {}).merged(orders[0])
        wait_until(lambda: ("merging", 300, 400, 300) in seen)

    assert seen[-1] == ("merging", 400, 400)


def test_a_merge_that_is_soon_over_says_nothing(tmp_path: Path) -> None:
    orders = [order(300)]
    plan: Any = SimpleNamespace(tables=orders, landing_uri=str(tmp_path), landing_options={}, pipeline="p", attempt="a")

    Progress(plan, {}).merged(orders[0])

    assert list(tmp_path.iterdir()) == []


def test_a_zone_that_takes_no_file_stops_no_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    (tmp_path / "p").write_text("a file where the folder should be")
    orders = [order(300)]
    plan: Any = SimpleNamespace(tables=orders, landing_uri=str(tmp_path), landing_options={}, pipeline="p", attempt="a")

    Progress(plan, {}).merged(orders[0])

    assert (tmp_path / "p").is_file()
