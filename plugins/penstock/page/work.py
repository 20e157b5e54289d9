"""Work under way: the tasks of a pipeline that run or wait, how far each is, and for whom it waits. Pure."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.flow.health.airflow_state import ActiveTask, AirflowState
from penstock.ledger.records import TaskRef
from penstock.ledger.work import WorkNote

_WAITING = ("scheduled", "queued")
_SAYS = {
    "up_for_retry": "is tried again",
    "up_for_reschedule": "looks again later",
    "restarting": "is restarted",
    "deferred": "waits for an event",
}


@dataclass(frozen=True)
class Work:
    """Show one task under way: in which state, since when, and what it waits for.

    `what` is the work whose end is known, `share` how much of it is done, `rows` those done where they are counted; `left_seconds`
    goes by the rate so far, and is None before there is one. `held_by` are the tasks that hold the slots of its pool; those of
    DAGs that are no pipeline's are only counted, in `held_by_others`.
    """

    task: TaskRef
    state: str
    since: datetime | None
    what: str | None = None
    share: float | None = None
    rows: int | None = None
    rows_per_second: float | None = None
    left_seconds: float | None = None
    pool: str | None = None
    held_by: tuple[TaskRef, ...] = ()
    held_by_others: int = 0


def under_way(
    name: str, airflow: AirflowState | None, notes: Sequence[WorkNote], pipelines: Collection[str]
) -> list[Work]:
    """Return what is under way for a pipeline: what runs, then what waits; what Airflow knows nothing of has ended."""
    if airflow is None:
        return []
    ours = [each for each in airflow.tasks if each.dag.rpartition(".")[0] == name]
    return [work for each in ours for work in _works(each, airflow, notes, pipelines)]


def _works(
    each: ActiveTask, airflow: AirflowState, notes: Sequence[WorkNote], pipelines: Collection[str]
) -> Iterator[Work]:
    ref = TaskRef(dag=each.dag, run_id=each.run_id, task=each.task)
    if each.state in _WAITING:
        holders = _holders(each, airflow)
        known = [one for one in holders if one.dag.rpartition(".")[0] in pipelines]
        yield Work(
            ref,
            "waits" if holders or each.state == "scheduled" else "is about to begin",
            each.since,
            pool=each.pool if holders else None,
            held_by=tuple(TaskRef(dag=one.dag, run_id=one.run_id, task=one.task) for one in known),
            held_by_others=len(holders) - len(known),
        )
        return
    if each.state != "running":
        yield Work(ref, _SAYS.get(each.state, each.state), each.since)
        return
    found = [note for note in notes if (note.dag, note.run_id, note.task) == (each.dag, each.run_id, each.task)]
    for note in found:
        said = {name: getattr(note, name) for name in ("what", "share", "rows", "rows_per_second", "left_seconds")}
        yield Work(ref, "runs", each.since, **said)
    if not found:
        yield Work(ref, "runs", each.since)


def _holders(each: ActiveTask, airflow: AirflowState) -> list[ActiveTask]:
    """Return the tasks that hold the pool of a task that is due, where they leave it no room; a queued one has a slot."""
    slots = airflow.pools.get(each.pool)
    if each.state != "scheduled" or slots is None or slots < 0:
        return []
    holders = [one for one in airflow.tasks if one.pool == each.pool and one.state in ("running", "queued")]
    return holders if sum(one.slots for one in holders) + each.slots > slots else []
