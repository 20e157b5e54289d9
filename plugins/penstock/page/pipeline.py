"""What the page shows of a pipeline, of its tasks under way and of a table, made of the ledger's records. Pure.

The same values are the page's HTML and its JSON; times are UTC, every number says its unit in its name.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.config import model
from penstock.flow.health.airflow_state import ActiveTask, AirflowState
from penstock.flow.health.input import HealthInput
from penstock.flow.health.rules_lake import NEEDED, readiness
from penstock.ledger.health import AlarmRecord, Finding, LateWork
from penstock.ledger.page import PipelineStatus, Shown, TableDetails, TablePanel
from penstock.ledger.records import TaskRef
from penstock.ledger.work import WorkNote
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.lake_types import STRING, element_type
from penstock.values.pgtype import type_name

Grade = Literal["ok", "warn", "critical", "idle"]
"""How a pipeline is doing, for its colour; `idle` is one that is not meant to move."""

_GONE = frozenset({"slot-missing", "slot-dropped"})
"""What says that the source has no slot of the pipeline's: what was seen of it last is not so any more."""
_WAITING = ("scheduled", "queued")
_SAYS = {
    "up_for_retry": "is tried again",
    "up_for_reschedule": "looks again later",
    "restarting": "is restarted",
    "deferred": "waits for an event",
}
IDENTITIES = {"d": "key", "i": "key", "f": "whole rows", "n": "nothing"}
"""How a table's changes find their rows; by nothing it takes inserts only."""


@dataclass(frozen=True, kw_only=True)
class Pipeline(PipelineStatus):
    """Show one pipeline: its record, and what was seen of its slot.

    `freshness_seconds` is the age of `as_of`. A pipeline that runs is healthy where `lacks` is empty. Where the source has no slot of
    its name any more `slot_is_gone`, and there is no `slot`, whatever the last look at it showed.
    """

    grade: Grade
    has_file: bool = True
    freshness_seconds: float | None = None
    slot: Shown | None = None
    slot_is_gone: bool = False
    alarms: tuple[AlarmRecord, ...] = ()
    lacks: tuple[Finding, ...] = ()


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


@dataclass(frozen=True)
class Column:
    """Show one column: its type at the source beside its type in the lake.

    One that is `dropped` is only in the lake, and has no type at the source. `later` says that it came when the table had rows:
    these show a default. `dimensions` are those with which an array of the lake is declared at the source.
    """

    number: int
    name: str
    source_type: str | None
    lake_type: str
    exact_text: bool
    key: bool
    dropped: bool
    later: bool
    dimensions: int = 0


def known_pipeline(
    row: PipelineStatus,
    now: datetime,
    *,
    file: model.Pipeline | None,
    slot: Shown | None,
    alarms: Sequence[AlarmRecord],
    airflow: AirflowState | None,
) -> Pipeline:
    """Show a pipeline that the ledger knows; slot health's rules say what it still lacks, by what the page knows."""
    gone = row.state == "torn_down" or not _GONE.isdisjoint({row.halted_slug, *(each.slug for each in alarms)})
    dags = {verb: airflow.dag(f"{row.name}.{verb}") for verb in NEEDED} if airflow else {}
    late = LateWork(sampled_at=slot["seen_at"] if slot else None)
    lacks = tuple(readiness(HealthInput(pipeline=file, at=now, airflow=dags, lake=row, late=late))) if file else ()
    return Pipeline(
        **vars(row),
        grade=_grade(row, slot, alarms, is_whole=file is not None and not lacks),
        has_file=file is not None,
        freshness_seconds=seconds_since(row.as_of, now),
        slot=None if gone else slot,
        slot_is_gone=gone,
        alarms=tuple(alarms),
        lacks=lacks,
    )


def unknown_pipeline(file: model.Pipeline, airflow: AirflowState | None) -> Pipeline:
    """Show a pipeline that has a file and is not known to its ledger, or not yet: a run of its bootstrap may be under way."""
    starts = airflow is not None and airflow.dag(f"{file.name}.bootstrap").under_way
    state = "starting" if starts else "not bootstrapped"
    return Pipeline(name=file.name, state=state, slot_name=file.slot, publication=file.publication, grade="idle")


def column(each: MirrorColumn) -> Column:
    """Show a column."""
    return Column(
        number=each.attnum,
        name=each.name,
        source_type=None if each.dropped else type_name(each.type),
        lake_type=each.lake_type,
        exact_text=each.lake_type == STRING,
        key=each.key,
        dropped=each.dropped,
        later=each.missing_text is not None,
        dimensions=each.dimensions if element_type(each.lake_type) else 0,
    )


def comparison(table: TablePanel, findings: Sequence[Shown]) -> tuple[datetime | None, str]:
    """Say when and how far the table was compared: through where all rows were equal, else what the newest comparison came to."""
    if table.verified_through is not None:
        return table.verified_at, f"through {table.verified_through}"
    if not findings:
        return None, "by no comparison with the source"
    newest = findings[0]
    share, shares = newest["share"], newest["shares"]
    part = "all rows of the table before" if shares == 1 else f"share {share} of {shares}"
    return newest["verified_at"], f"{newest['outcome']}: {part}; not all of its rows yet"


def complete_as_of(table: TablePanel, facts: TableDetails, pipeline: Pipeline) -> datetime | None:
    """Return the source's time through which the table is complete: that of the cut, or of where it stays behind."""
    return pipeline.as_of if table.state in ("ready", "leaving") else facts.paused_as_of


def seconds_since(since: datetime | None, now: datetime) -> float | None:
    """Return the age of what is of this time, None for what is of none."""
    return None if since is None else max((now - since).total_seconds(), 0.0)


def _grade(row: PipelineStatus, slot: Shown | None, alarms: Sequence[AlarmRecord], *, is_whole: bool) -> Grade:
    lost = slot is not None and slot["wal_status"] == "lost"
    if row.state == "halted" or lost or any(each.level == "critical" for each in alarms):
        return "critical"
    if row.tables_paused or alarms or not is_whole:
        return "warn"
    return "ok" if row.state == "running" else "idle"


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
