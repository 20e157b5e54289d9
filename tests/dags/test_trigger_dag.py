"""When a capture that goes on wakes the merge by itself."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.orchestration import other_dags


def shop() -> tuple[Any, list[str]]:
    """The context of a running task, and what it says."""
    said: list[str] = []
    return SimpleNamespace(name="shop", progress=said.append), said


class Airflow:
    """What Airflow says of the merge DAG, and what it was asked to trigger."""

    dag_id = "shop.capture"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, runs: int = 0, paused: bool = False) -> None:
        self.runs, self.paused = runs, paused
        self.triggered: list[str] = []
        monkeypatch.setattr(other_dags, "trigger_dag_run", lambda dag_id, *_: self.triggered.append(dag_id))

    def get_dag(self, dag_id: str) -> Any:
        return SimpleNamespace(is_paused=self.paused)

    def get_dr_count(self, dag_id: str, *, states: list[str]) -> int:
        return self.runs if (dag_id, set(states)) == ("shop.merge", {"queued", "running"}) else 0


def test_the_merge_is_triggered_where_no_run_of_it_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    airflow, ctx, said = Airflow(monkeypatch), *shop()

    other_dags.wake_merge(ctx, airflow)

    assert said == ["the DAG shop.merge was triggered"]
    assert airflow.triggered == ["shop.merge"]


@pytest.mark.parametrize("found", [{"runs": 1}, {"paused": True}])
def test_a_merge_that_runs_or_is_paused_is_left_alone(monkeypatch: pytest.MonkeyPatch, found: dict[str, Any]) -> None:
    airflow, ctx, said = Airflow(monkeypatch, **found), *shop()

    other_dags.wake_merge(ctx, airflow)

    assert (said, airflow.triggered) == ([], [])
