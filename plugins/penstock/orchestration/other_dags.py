"""What a task asks of other DAGs, and of its own: how they stand, whether they wait for its slot, and to run.

Tasks have no access to Airflow's metadata database, and its API for tasks counts instances of one DAG at a time. So the
DAGs with tasks in the pool are asked in turn, at a bounded rate.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError

from penstock.config.files import read_folder
from penstock.config.model import Pipeline
from penstock.config.paths import environment, folder
from penstock.flow.context import Context
from penstock.flow.health.airflow_state import DagState
from penstock.orchestration.airflow_internals import is_not_found, trigger_dag_run

WATCHED = ("capture", "merge", "resync", "maintain", "changelog", "verify")
"""The verbs that slot health looks at; whether itself is paused it cannot tell."""
UNDER_WAY = ["queued", "running"]


def dag_states(ti: Any, pipeline: Pipeline, verbs: Sequence[str] = WATCHED) -> dict[str, DagState]:
    """Return how these DAGs stand, by verb."""
    return {verb: _state(ti, f"{pipeline.name}.{verb}", runs=verb == "merge") for verb in verbs}


def _state(ti: Any, dag_id: str, *, runs: bool) -> DagState:
    try:
        is_paused = bool(ti.get_dag(dag_id).is_paused)
        under_way = runs and bool(ti.get_dr_count(dag_id, states=UNDER_WAY))
    except AirflowRuntimeError as error:
        return DagState(missing=is_not_found(error))
    return DagState(is_paused, under_way=under_way)


_AGAIN_SECONDS = 300.0


def trigger(ti: Any, dag_id: str, conf: dict[str, Any] | None = None) -> str:
    """Trigger a DAG in the name of this task's; return what became of it, for the log."""
    run_id = f"{ti.dag_id.rpartition('.')[2]}__{datetime.now(UTC).isoformat()}"
    if why_not := trigger_dag_run(dag_id, run_id, conf):
        return f"the DAG {dag_id} could not be triggered: {why_not}; trigger it"
    paused = ti.get_dag(dag_id).is_paused
    return f"the DAG {dag_id} was triggered" + ("; it is paused: unpause it" if paused else "")


class MergeTrigger:
    """Trigger the merge DAG when asked, at most once in five minutes: runs queue one behind the other."""

    def __init__(self, ti: Any, pipeline: Pipeline) -> None:
        self.ti = ti
        self.dag_id = f"{pipeline.name}.merge"
        self.fired_at = float("-inf")
        self.said = ""

    def fire(self) -> str:
        """Return what is being waited for, for the log."""
        if self.ti.get_dag(self.dag_id).is_paused:
            return f"the DAG {self.dag_id} is paused: unpause it"
        if time.monotonic() - self.fired_at >= _AGAIN_SECONDS:
            self.said, self.fired_at = trigger(self.ti, self.dag_id), time.monotonic()
        return self.said


def wake_merge(ctx: Context, ti: Any) -> None:
    """Trigger the merge DAG where no run of it is there to take what was landed, and say what became of it.

    The asset event of a task is sent when the task ends, which for a capture that repeats is a minute later.
    """
    dag_id = f"{ctx.name}.merge"
    if not ti.get_dag(dag_id).is_paused and not ti.get_dr_count(dag_id, states=UNDER_WAY):
        ctx.progress(trigger(ti, dag_id))


POOL_TASKS = {
    "bootstrap": ["copy", "load"],
    "maintain": ["maintain"],
    "merge": ["spark"],
    "recover": ["copy", "load", "merge"],
    "replay": ["switch"],
    "resync": ["switch"],
}
"""The tasks of each verb's DAG that take a slot of the Spark pool."""
_WAITING = ["scheduled", "queued"]
_ROUND_SECONDS = 30.0
_PAUSE_SECONDS = 0.5
_PASSING_SECONDS = 2.0
"""A task that has a slot is scheduled and queued for so long, too: only one that still waits after it lacks one."""


class WaitingTasks:
    """Look at the other DAGs, a little at every call; the pipelines are those of the folder at the beginning of each round."""

    def __init__(self, ti: Any, pipelines: Callable[[], Iterable[str]] | None = None) -> None:
        self._ti = ti
        self._pipelines = pipelines or _pipelines
        self._pause = _PAUSE_SECONDS
        self._reasons = self._next_reasons()
        self._next = 0.0

    def why_end(self) -> str | None:
        """Return what this task should make way for, None if nothing was found by now."""
        if time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + self._pause
        return next(self._reasons)

    def _next_reasons(self) -> Iterator[str | None]:
        while True:
            yield paused(self._ti)
            names = list(self._pipelines())
            others = [(f"{name}.{verb}", tasks) for name in names for verb, tasks in POOL_TASKS.items()]
            self._pause = min(_PAUSE_SECONDS, _ROUND_SECONDS / (len(others) + 1))
            for dag_id, tasks in others:
                if dag_id != self._ti.dag_id:
                    yield from self._reasons_of(dag_id, tasks)

    def _reasons_of(self, dag_id: str, tasks: list[str]) -> Iterator[str | None]:
        seen = time.monotonic()
        while self._waits(dag_id, tasks):
            if time.monotonic() - seen >= _PASSING_SECONDS:
                yield f"a task of {dag_id} waits for a slot of the pool {self._ti.task.pool}"
                return
            yield None
        yield None

    def _waits(self, dag_id: str, tasks: list[str]) -> bool:
        return bool(self._ti.get_ti_count(dag_id, task_ids=tasks, states=_WAITING))


def paused(ti: Any) -> str | None:
    """Return that the DAG of a running task was paused, None if it was not."""
    return f"{ti.dag_id} was paused" if ti.get_dag(ti.dag_id).is_paused else None


def _pipelines() -> Iterable[str]:
    return read_folder(folder(), environment()).pipelines
