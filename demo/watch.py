"""Look at a pipeline at work: print what is new, and stop at the first thing that went wrong.

What is new comes from the ledger (windows, cuts); what went wrong from there too (a halted pipeline, a paused
table) and from Airflow (a failed run, with the failed task and the last lines of its log).
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from penstock.flow.context import Context
from penstock.ledger.records import CutRecord, WindowRecord
from stack.airflow.rest_api import AirflowApi, Json
from stack.errors import StackError

MANY = 100_000
WATCHED = ("capture", "merge", "resync", "changelog")


@dataclass
class Watch:
    """One pipeline under watch; runs in `earlier` are those of an earlier demo. `print_line` gets a line per news."""

    context: Context
    api: AirflowApi
    print_line: Callable[[str], None]
    earlier: Collection[str] = ()
    _printed: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Print the news; raises StackError when something went wrong."""
        for window in filter(lambda window: window.rows, self.windows()):
            rate = f", {window.rows / window.seconds:,.0f} per second" if window.seconds else ""
            self._print_once(f"captured {window.rows:,} changes through {window.upto_lsn}{rate}")
        for cut in self.cuts()[1:]:
            self._print_once(f"merged and published: cut {cut.lsn}")
        self._stop_at_failed_runs()
        self._stop_at_problems()

    def windows(self) -> list[WindowRecord]:
        """Return the windows that were landed, in order."""
        return [window for window in self.context.ledger.windows.all(self.context.name) if window.staged_at is not None]

    def cuts(self) -> list[CutRecord]:
        """Return the cuts, oldest first."""
        return self.context.ledger.merges.cuts(self.context.name, limit=MANY)[::-1]

    def runs(self, verb: str) -> Iterator[Json]:
        """Yield the runs of one DAG of this demo."""
        return (run for run in self.api.runs(self.dag(verb)) if run["dag_run_id"] not in self.earlier)

    def captures(self) -> int:
        """Count the captures that have landed changes."""
        return sum(window.rows > 0 for window in self.windows())

    def merges(self) -> int:
        """Count the cuts after the bootstrap's."""
        return len(self.cuts()) - 1

    def task_seconds(self, verb: str, task_id: str) -> list[float]:
        """Return how long each successful run of one task took."""
        tasks = (task for run in self.runs(verb) for task in self.api.task_instances(self.dag(verb), run["dag_run_id"]))
        return [task["duration"] for task in tasks if task["task_id"] == task_id and task["state"] == "success"]

    def print_tasks(self, tasks: list[Json]) -> None:
        """Print which tasks of a run have ended."""
        for task in tasks:
            if task["state"] in ("success", "up_for_retry") and task["duration"] is not None:
                ended = "done" if task["state"] == "success" else f"failed, try {task['try_number']}"
                self._print_once(f"{task['task_id']}: {ended} ({task['duration']:.0f} s)")

    def dag(self, verb: str) -> str:
        """Name a DAG of the pipeline."""
        return f"{self.context.name}.{verb}"

    def _print_once(self, line: str) -> None:
        if line not in self._printed:
            self._printed.add(line)
            self.print_line(f"  {line}")

    def _stop_at_failed_runs(self) -> None:
        for verb in WATCHED:
            for run in self.runs(verb):
                if run["state"] == "failed":
                    came = self.api.failure(self.dag(verb), run["dag_run_id"])
                    expected = f"every run of {self.dag(verb)} to succeed"
                    raise StackError(expected, came, "`make up` shows the run and its whole log in Airflow's UI")

    def _stop_at_problems(self) -> None:
        name, ledger = self.context.name, self.context.ledger
        tables, known = ledger.tables.all(name), ledger.pipelines.get(name)
        problems = {each.qualified: (each.paused_slug, each.paused_reason) for each in tables if each.state == "paused"}
        if known.state == "halted":
            problems = {f"pipeline {name}": (known.halted_slug, known.halted_reason)}
        if problems:
            came = "; ".join(f"{what}: [{slug}] {reason}" for what, (slug, reason) in problems.items())
            pages = sorted({f"docs/runbooks/{slug}.md" for slug, _ in problems.values()})
            raise StackError("every table to follow the source", came, f"read {', '.join(pages)}")
