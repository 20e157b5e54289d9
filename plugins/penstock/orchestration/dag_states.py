"""How the DAGs of a pipeline stand, as Airflow's task runtime reports it: tasks have no access to the metadata database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError

from penstock.config.model import Pipeline
from penstock.flow.health.input import DagState
from penstock.orchestration.airflow_internals import is_not_found

WATCHED = ("capture", "merge", "resync", "maintain", "changelog", "verify")
"""The verbs that slot health looks at; whether itself is paused it cannot tell."""
_UNDER_WAY = ["queued", "running"]


def dag_states(ti: Any, pipeline: Pipeline, verbs: Sequence[str] = WATCHED) -> dict[str, DagState]:
    """Return how these DAGs stand, by verb."""
    return {verb: _state(ti, f"{pipeline.name}.{verb}", runs=verb == "merge") for verb in verbs}


def _state(ti: Any, dag_id: str, *, runs: bool) -> DagState:
    try:
        is_paused = bool(ti.get_dag(dag_id).is_paused)
        under_way = runs and bool(ti.get_dr_count(dag_id, states=_UNDER_WAY))
    except AirflowRuntimeError as error:
        return DagState(missing=is_not_found(error))
    return DagState(is_paused, under_way=under_way)
