"""How long a run goes on to capture."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.config.connections import Connection
from penstock.config.model import Pipeline
from penstock.flow.capture import run
from penstock.flow.capture.report import CaptureReport, WindowReport
from penstock.flow.context import Context
from penstock.lsn import Lsn


def nowhere(conn_id: str) -> Connection:
    raise AssertionError(f"expected no look at {conn_id}")


def context(**capture: Any) -> Context:
    pipeline = Pipeline.model_validate({"name": "shop", "tables": {"include": ["*.*"]}, "capture": capture})
    return Context(pipeline, nowhere, Path())


class Captures:
    """Captures of nothing, on a clock that passes only while somebody sleeps; `at` is when they began."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.at: list[float] = []
        self.patterns: list[bool] = []

    def __call__(self, ctx: Context, *, patterns: bool) -> CaptureReport:
        self.at.append(self.now - 1000)
        self.patterns.append(patterns)
        self.now += 1
        return CaptureReport((WindowReport(Lsn(1), Lsn(2), 3, 1, 10, 1.0, 0),))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> Captures:
    made = Captures()
    monkeypatch.setattr(run, "capture", made)
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


@pytest.mark.parametrize(
    ("settings", "began"),
    [
        ({}, [0]),
        ({"schedule": None, "every": "10s", "time_budget": "35s"}, [0, 10, 20, 30]),
        ({"schedule": None, "every": "10s", "time_budget": "30s"}, [0, 10, 20]),
        ({"schedule": "0 0 1 1 *", "every": "20s", "time_budget": "1m"}, [0, 20, 40]),
    ],
)
def test_a_run_captures_at_equal_steps_within_its_budget(
    captures: Captures, settings: dict[str, Any], began: list[float]
) -> None:
    report = run.capture_repeatedly(context(**settings), sleep=captures.sleep)

    assert captures.at == began
    assert captures.patterns == [True] + [False] * (len(began) - 1), "the publication follows its patterns once"
    assert report.changes == 3 * len(began)


def test_the_schedules_next_run_is_not_kept_waiting() -> None:
    ctx = context(schedule="* * * * *", every="10s", time_budget="1h")

    assert run._seconds_left(ctx, datetime(2026, 11, 23, 8, 0, 48, tzinfo=UTC)) == 12


def test_a_reason_to_end_is_asked_for_before_each_further_capture(captures: Captures) -> None:
    ctx = context(schedule=None, every="10s", time_budget="1h")
    reasons = iter([None, None, "shop.capture was paused"])
    why_end: Callable[[], str | None] = lambda: next(reasons)  # noqa: E731

    run.capture_repeatedly(ctx, why_end=why_end, sleep=captures.sleep)

    assert captures.at == [0, 10, 20]


def test_each_capture_with_changes_that_another_one_follows_is_told_of(captures: Captures) -> None:
    ctx, told = context(schedule=None, every="10s", time_budget="25s"), list[int]()

    run.capture_repeatedly(ctx, landed=lambda report: told.append(report.changes), sleep=captures.sleep)

    assert (captures.at, told) == ([0, 10, 20], [3, 3]), "the last one is told of by the task's own asset event"
