"""Why a task that only keeps its Spark application should end: other tasks wait for the pool, or its DAG was paused.

Tasks have no access to Airflow's metadata database, and its API for tasks counts instances of one DAG at a time. So the
DAGs with tasks in the pool are asked in turn, at a bounded rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.config.files import read_folder
from penstock.config.paths import environment, folder

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
        self._looks = self._look()
        self._next = 0.0

    def why_end(self) -> str | None:
        """Return what this task should make way for, None if nothing was found by now."""
        if time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + self._pause
        return next(self._looks)

    def _look(self) -> Iterator[str | None]:
        while True:
            yield paused(self._ti)
            names = list(self._pipelines())
            others = [(f"{name}.{verb}", tasks) for name in names for verb, tasks in POOL_TASKS.items()]
            self._pause = min(_PAUSE_SECONDS, _ROUND_SECONDS / (len(others) + 1))
            for dag_id, tasks in others:
                if dag_id != self._ti.dag_id:
                    yield from self._look_at(dag_id, tasks)

    def _look_at(self, dag_id: str, tasks: list[str]) -> Iterator[str | None]:
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
