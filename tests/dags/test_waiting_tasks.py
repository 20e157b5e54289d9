"""What a merge that lingers makes way for."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.orchestration import other_dags
from penstock.orchestration.other_dags import POOL_TASKS, WaitingTasks
from penstock.orchestration.tasks import SPARK_POOL
from tests.dags.test_dags import load
from tests.waiting import wait_until


class AirflowAnswers:
    """What Airflow's API for tasks says of the DAGs of two pipelines."""

    dag_id = "shop.merge"
    task = SimpleNamespace(pool="penstock_spark")

    def __init__(self, *, waiting: str | None = None, paused: bool = False) -> None:
        self.waiting = waiting
        self.paused = paused

    def get_dag(self, dag_id: str) -> Any:
        return SimpleNamespace(is_paused=self.paused)

    def get_ti_count(self, dag_id: str, *, task_ids: list[str], states: list[str]) -> int:
        return int(dag_id == self.waiting)


def first_reason(answers: AirflowAnswers) -> str:
    found: list[str] = []
    looking = WaitingTasks(answers, lambda: ["shop", "bank"])

    def look() -> bool:
        found.extend(filter(None, [looking.why_end()]))
        return bool(found)

    wait_until(look, "a reason to end")
    return found[0]


def test_every_task_that_takes_a_slot_of_the_spark_pool_is_known(pipelines: Path) -> None:
    found: dict[str, list[str]] = {}
    for verb in ("bootstrap", "capture", "changelog", "maintain", "merge", "recover", "replay", "resync", "verify"):
        dag: Any = load(verb)[f"shop.{verb}"]
        tasks = sorted(task.task_id for task in dag.tasks if task.pool == SPARK_POOL)
        found |= {verb: tasks} if tasks else {}

    assert found == POOL_TASKS


def test_a_task_of_another_pipeline_that_waits_for_a_slot_ends_the_lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_dags, "_PASSING_SECONDS", 0)

    assert first_reason(AirflowAnswers(waiting="bank.maintain")) == (
        "a task of bank.maintain waits for a slot of the pool penstock_spark"
    )


def test_a_pause_of_the_dag_ends_the_lingering() -> None:
    assert first_reason(AirflowAnswers(paused=True)) == "shop.merge was paused"


def test_a_task_that_only_passes_through_the_queue_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = AirflowAnswers(waiting="bank.merge")
    monkeypatch.setattr(other_dags, "_PAUSE_SECONDS", 0)
    looking = WaitingTasks(answers, lambda: ["bank"])
    looks = [looking.why_end() for _ in range(5)]
    answers.waiting = None

    assert looks + [looking.why_end() for _ in range(20)] == [None] * 25


def test_a_pipeline_whose_file_was_written_since_is_made_way_for(
    pipelines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_dags, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(other_dags, "_PASSING_SECONDS", 0)
    looking = WaitingTasks(AirflowAnswers(waiting="late.bootstrap"))
    before = [looking.why_end() for _ in range(50)]

    (pipelines / "late.yaml").write_text("name: late\ntables: {include: [public.*]}\n")

    assert before == [None] * 50
    assert "a task of late.bootstrap waits for a slot of the pool penstock_spark" in [
        looking.why_end() for _ in range(50)
    ]
