"""How the capture DAG stands, as Airflow's task runtime reports it: tasks have no access to the metadata database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk.execution_time.comms import GetPreviousDagRun, PreviousDagRunResult

from penstock.config import Pipeline
from penstock.flow.health.observe import CaptureState
from penstock.orchestration.supervisor import ask


def capture_state(ti: Any, pipeline: Pipeline) -> CaptureState:
    """Return whether `<pipeline>.capture` is paused, and since when it fails if its newest finished run did."""
    dag_id = f"{pipeline.name}.capture"
    success, failed = _last(dag_id, "success"), _last(dag_id, "failed")
    failing = failed is not None and (success is None or failed > success)
    return CaptureState(
        paused=bool(ti.get_dag(dag_id).is_paused),
        failing_since=failed if failing else None,
        last_success=success,
    )


def _last(dag_id: str, state: str) -> datetime | None:
    answer = ask(GetPreviousDagRun(dag_id=dag_id, logical_date=datetime.now(UTC), state=state))
    run = answer.dag_run if isinstance(answer, PreviousDagRunResult) else None
    return run.logical_date if run else None
