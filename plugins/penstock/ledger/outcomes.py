"""How the tasks of a pipeline's DAGs ended last: Airflow's API for tasks does not tell that of runs which an asset started.

A task notes its own end; the DAG's failure notice notes what was killed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.ledger.records import Row
from penstock.ledger.session import Part


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
    succeeded_at: datetime | None


class Outcomes(Part):
    """Note how tasks end, and return it."""

    def failed(self, name: str, dag: str, task: str, run_id: str, *, slug: str | None = None) -> None:
        """Note that a task has failed for good; a pipeline that the ledger does not know has no outcomes."""
        self.change("outcomes/note_failure", name=name, dag=dag, task=task, run_id=run_id, slug=slug)

    def succeeded(self, name: str, dag: str, task: str, run_id: str, *, last: bool) -> None:
        """Note that a task has succeeded; with the `last` one of its DAG, all that earlier runs failed at is over."""
        self.change("outcomes/note_success", name=name, dag=dag, task=task, run_id=run_id, last=last)

    def spent(self, name: str, dag: str, *, seconds: float, cpu_seconds: float) -> None:
        """Note what a task has used, however it ended."""
        self.change("outcomes/note_spent", name=name, dag=dag, seconds=seconds, cpu_seconds=cpu_seconds)

    def all(self, name: str) -> list[TaskOutcome]:
        """Return how every task ended last."""
        return self.records(TaskOutcome, "outcomes/outcomes", name=name)
