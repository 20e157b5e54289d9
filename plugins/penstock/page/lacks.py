"""What a pipeline that runs still lacks to be healthy: a cut, DAGs that are unpaused, somebody who watches its slot, freshness. Pure.

What slot health has a rule for is asked of it; but before its first look, or while it is paused, no alarm opens. A DAG that is paused
is no alarm while nothing waits for it, nor is a pipeline without a cut: these are judged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from penstock.config import model
from penstock.flow.health.airflow_state import AirflowState
from penstock.flow.health.input import HealthInput, LedgerFacts
from penstock.flow.health.rules_lake import freshness_limits, stale, watched
from penstock.ledger.health import LateWork
from penstock.ledger.page import PipelineStatus
from penstock.page.pipeline import Lack
from penstock.units import span

_PAUSED = {
    "capture": ("capture-paused", "nothing new is read from the source, and its slot keeps WAL"),
    "merge": ("merge-paused", "readers keep the last cut, however much is landed"),
    "slot_health": ("slot-unwatched", "nobody watches the WAL that the slot keeps, and no alarm opens"),
}
"""The DAGs without which a pipeline is not healthy: the runbook of each, and what follows while it is paused."""


def lacks(
    row: PipelineStatus,
    pipeline: model.Pipeline | None,
    seen_at: datetime | None,
    airflow: AirflowState | None,
    now: datetime,
) -> tuple[Lack, ...]:
    """Return what is missing, the first thing to do first; nothing for a pipeline that is not meant to run by now."""
    if row.state != "running" or pipeline is None:
        return ()
    return (
        *_unpaused(pipeline.name, airflow),
        *_unwatched(pipeline, seen_at, airflow, now),
        *_cut(row, pipeline, now),
    )


def _unpaused(name: str, airflow: AirflowState | None) -> Iterator[Lack]:
    if airflow is None:
        reason = "Its database did not answer this page, so whether capture, merge and slot health are unpaused is not known."
        yield Lack("airflow-silent", "Airflow does not say how its DAGs stand", reason, None, None)
        return
    for verb, (runbook, follows) in _PAUSED.items():
        dag_id = f"{name}.{verb}"
        state = airflow.dag(dag_id)
        if state.missing:
            reason = f"Airflow has no DAG {dag_id}: {follows}. Its list of import errors says why."
            yield Lack("dag-missing", f"There is no DAG {dag_id}", reason, None, "config-invalid")
        elif state.paused:
            yield Lack(runbook, f"{dag_id} is paused", f"While it is, {follows}.", verb, runbook)


def _unwatched(
    pipeline: model.Pipeline, seen_at: datetime | None, airflow: AirflowState | None, now: datetime
) -> Iterator[Lack]:
    name = "slot-unwatched"
    if airflow is not None and airflow.dag(f"{pipeline.name}.slot_health").paused is not False:
        return  # that is what is missing
    if pipeline.health.schedule is None:
        reason = "health.schedule is null: what the slot keeps is seen only when somebody triggers slot health."
        yield Lack(name, "Slot health has no schedule", reason, "slot_health", name)
    elif seen_at is None:
        reason = "What it keeps on the source is unknown until slot health has run once."
        yield Lack(name, "The slot was not checked yet", reason, "slot_health", name)
    else:
        now_ = HealthInput(pipeline, now, LedgerFacts(late=LateWork(sampled_at=seen_at)))
        for finding in watched(now_):
            reason = f"{finding.message[:1].upper()}{finding.message[1:]}: the slot's numbers below are that old."
            yield Lack(name, "The slot is not checked", reason, "slot_health", name)


def _cut(row: PipelineStatus, pipeline: model.Pipeline, now: datetime) -> Iterator[Lack]:
    if row.as_of is None:
        title = "There is no cut yet" if row.cut_lsn is None else "There is no cut since the slot was made anew"
        reason = "Readers see nothing." if row.cut_lsn is None else "Readers see the lake as it was before."
        yield Lack(
            "no-cut",
            title,
            f"{reason} A merge publishes one; with force it does so even when nothing has changed.",
            "merge",
            None,
        )
        return
    verb = "merge" if row.unmerged_changes else "capture"
    what = "a merge brings what is landed" if row.unmerged_changes else "captures bring the lake forward"
    for finding in stale(HealthInput(pipeline, now, LedgerFacts(row))):
        behind, limit = span(finding.numbers["age_seconds"]), span(freshness_limits(pipeline)[0])
        reason = f"Readers see the source as it was {behind} ago, the limit is {limit}; {what}."
        yield Lack("lake-stale", "The lake is stale", reason, verb, "lake-stale")
