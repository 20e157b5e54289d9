"""Bars are for a terminal: a copy's follows the files that are landed, and a log gets none."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from penstock.cli import printing
from penstock.cli.printing import bars
from penstock.flow import spark_job
from penstock.flow.load import spark_copy
from penstock.jobs.plans import CopyPlan, CopyRange
from penstock.landing.zone import LandingZone
from tests.waiting import wait_until


def plan(paths: list[str]) -> CopyPlan:
    ranges = tuple(CopyRange(1, "public", "t", ("id",), 0, None, None, path) for path in paths)
    return CopyPlan("p", "copy", "/nowhere", "p/copies/copy", "snapshot", 2, 1, ranges)


def test_a_copy_is_as_far_as_its_ranges_are_landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_job, "EVERY_SECONDS", 0.001)
    zone, seen = LandingZone.open(str(tmp_path), {}), []
    paths = ["p/copies/copy/1-0.parquet", "p/copies/copy/1-1.parquet"]

    def stage(what: str, done: int, total: int, rows: int | None = None) -> None:
        seen.append((what, done, total, rows))

    ctx: Any = SimpleNamespace(landing=zone, stage=stage, is_watched=True)
    with spark_copy._watched(ctx, plan(paths), spark_copy.Earlier()):
        writer = zone.copy_writer(paths[0], ["id"], {})
        writer.write(pa.record_batch({"id": ["1", "2", "3"]}))
        writer.close(oid=1)
        wait_until(lambda: ("copying 1 table", 1, 2, 3) in seen)

    assert seen[0] == ("copying 1 table", 0, 2, None)
    assert seen[-1] == ("copying 1 table", 2, 2, None)


def test_a_copy_that_begins_again_counts_over_all_tables(tmp_path: Path) -> None:
    seen = []
    ctx: Any = SimpleNamespace(
        landing=LandingZone.open(str(tmp_path), {}), stage=lambda *said: seen.append(said), is_watched=True
    )
    with spark_copy._watched(
        ctx, plan(["p/copies/copy/1-0.parquet"]), spark_copy.Earlier(tables=9, files=30, rows=4711)
    ):
        pass

    assert seen[0] == ("copying 10 tables", 30, 31, 4711)
    assert seen[-1][:3] == ("copying 10 tables", 31, 31)


def test_a_terminal_shows_a_bar_and_a_log_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(printing, "progress_console", lambda: Console(file=terminal, force_terminal=True, width=120))
    with bars() as stage:
        assert stage is not None
        stage("copying 3 tables", 1, 4)
    assert "copying 3 tables" in terminal.getvalue()
    assert "25%" in terminal.getvalue()

    monkeypatch.setattr(printing, "progress_console", lambda: Console(file=io.StringIO()))
    with bars() as stage:
        assert stage is None
