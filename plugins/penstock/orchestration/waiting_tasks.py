"""Why a task that only keeps its Spark application should end: other tasks wait for the pool, or its DAG was paused.

Tasks have no access to Airflow's metadata database, and its API for tasks counts instances of one DAG at a time. So the
DAGs with tasks in the pool are asked in turn, at a bounded rate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

from penstock.pipeline_files import read_folder
from penstock.places import environment, folder

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
    """Look at the other DAGs, a little at every call."""

    def __init__(self, ti: Any, pipelines: list[str] | None = None) -> None:
        names = list(read_folder(folder(), environment()).pipelines) if pipelines is None else pipelines
        others = [(f"{name}.{verb}", tasks) for name in names for verb, tasks in POOL_TASKS.items()]
        self._ti = ti
        self._turns = cycle([None, *(each for each in others if each[0] != ti.dag_id)])
        self._pause = min(_PAUSE_SECONDS, _ROUND_SECONDS / (len(others) + 1))
        self._looks = self._look()
        self._next = 0.0

    def why_end(self) -> str | None:
        """Return what this task should make way for, None if nothing was found by now."""
        if time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + self._pause
        return next(self._looks)

    def _look(self) -> Iterator[str | None]:
        for turn in self._turns:
            if turn is None:
                yield paused(self._ti)
                continue
            seen = time.monotonic()
            while self._waits(*turn):
                if time.monotonic() - seen >= _PASSING_SECONDS:
                    yield f"a task of {turn[0]} waits for a slot of the pool {self._ti.task.pool}"
                    break
                yield None
            else:
                yield None

    def _waits(self, dag_id: str, tasks: list[str]) -> bool:
        return bool(self._ti.get_ti_count(dag_id, task_ids=tasks, states=_WAITING))


def paused(ti: Any) -> str | None:
    """Return that the DAG of a running task was paused, None if it was not."""
    return f"{ti.dag_id} was paused" if ti.get_dag(ti.dag_id).is_paused else None
