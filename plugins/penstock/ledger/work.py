"""How far the tasks of a pipeline are in works with a known end, and until when a merge keeps its Spark application.

It is for whoever looks at the pipeline; nothing depends on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from penstock.ledger.records import Row
from penstock.ledger.session import Part

_LEAST_SECONDS = 5.0
"""A rate of less time than this says nothing."""
_SPARK, _KEPT = {"dag": "", "run_id": "", "task": "merge"}, "Spark application"
"""One for each pipeline, whether a task of Airflow keeps it or a shell."""


@dataclass(frozen=True)
class WorkNote(Row):
    """Hold how far a task is: `done` of `total` parts, and `rows` where they are counted; `first_*` is what was done when it began.

    Who cannot ask Airflow whether the task runs goes by `fresh`: a task at work notes it every other second. `until` is that of a
    kept Spark application, of which `done` are its cuts.
    """

    dag: str
    run_id: str
    task: str
    what: str
    done: int
    total: int
    rows: int | None
    first_done: int
    first_rows: int | None
    started_at: datetime
    seen_at: datetime
    fresh: bool
    until: datetime | None

    @property
    def share(self) -> float | None:
        """Return how much of the work is done, 0 to 1."""
        return self.done / self.total if self.total else None

    @property
    def rows_per_second(self) -> float | None:
        """Return the rate so far, None before there is one."""
        rows = None if self.rows is None else self.rows - (self.first_rows or 0)
        return rows / self._seconds if self._has_rate and rows else None

    @property
    def left_seconds(self) -> float | None:
        """Return the time left at the rate so far, None before there is one."""
        return (self.total - self.done) * self._seconds / (self.done - self.first_done) if self._has_rate else None

    @property
    def _seconds(self) -> float:
        return (self.seen_at - self.started_at).total_seconds()

    @property
    def _has_rate(self) -> bool:
        return self._seconds >= _LEAST_SECONDS and self.done > self.first_done


class Work(Part):
    """Note how far tasks are."""

    def note(self, name: str, task: Mapping[str, str], *, what: str, done: int, total: int, rows: int | None) -> None:
        """Note how far a task is in one of its works."""
        self.change("work/note", name=name, what=what, done=done, total=total, rows=rows, until=None, **task)

    def keep_spark(self, name: str, *, until: datetime, cuts: int) -> None:
        """Note that a merge keeps its Spark application, and how many cuts it has made; note it time and again."""
        self.change("work/note", name=name, what=_KEPT, done=cuts, total=0, rows=None, until=until, **_SPARK)

    def forget_spark(self, name: str) -> None:
        """Forget the Spark application that is not kept any more."""
        self.forget(name, _SPARK, what=_KEPT)

    def forget(self, name: str, task: Mapping[str, str], *, what: str | None = None) -> None:
        """Forget a work that is done; without one, all that other runs of this task have left."""
        self.change("work/forget", name=name, what=what, **task)


@dataclass(frozen=True)
class TaskOutcome(Row):
    """Hold how one task ended last; `task` is empty for a run of which only its failure is known.

    `failing_since` is None where its last run succeeded; `slug` names the error, None where it has no name.
    """

    dag: str
    task: str
    run_id: str
    ended_at: datetime
    failing_since: datetime | None
    slug: str | None


class Outcomes(Part):
    """Note how tasks end, and return it."""

    def failed(self, name: str, dag: str, task: str, run_id: str, *, slug: str | None = None) -> None:
        """Note that a task has failed for good; a pipeline that the ledger does not know has no outcomes."""
        self.change("work/note_failure", name=name, dag=dag, task=task, run_id=run_id, slug=slug)

    def succeeded(self, name: str, dag: str, task: str, run_id: str, *, last: bool) -> None:
        """Note that a task has succeeded; with the `last` one of its DAG, all that earlier runs failed at is over."""
        self.change("work/note_success", name=name, dag=dag, task=task, run_id=run_id, last=last)

    def spent(self, name: str, dag: str, *, seconds: float, cpu_seconds: float) -> None:
        """Note what a task has used, however it ended."""
        self.change("work/note_spent", name=name, dag=dag, seconds=seconds, cpu_seconds=cpu_seconds)

    def all(self, name: str) -> list[TaskOutcome]:
        """Return how every task ended last."""
        return self.records(TaskOutcome, "work/outcomes", name=name)
