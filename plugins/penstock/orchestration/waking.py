"""Bring a merge about from another DAG's task: trigger `<pipeline>.merge`, and say what hinders it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.execution_time import task_runner  # its channel to the supervisor exists only in a running task
from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun

from penstock.config import Pipeline

_AGAIN_SECONDS = 300.0


class MergeBell:
    """Trigger the merge DAG when asked, at most once in five minutes: runs queue one behind the other."""

    def __init__(self, ti: Any, pipeline: Pipeline) -> None:
        self.ti = ti
        self.dag_id = f"{pipeline.name}.merge"
        self.rung_at = float("-inf")

    def ring(self) -> str:
        """Return what is being waited for, for the log."""
        if self.ti.get_dag(self.dag_id).is_paused:
            return f"the DAG {self.dag_id} is paused: unpause it"
        if time.monotonic() - self.rung_at >= _AGAIN_SECONDS:
            run_id = f"verify__{datetime.now(UTC).isoformat()}"
            answer = task_runner.SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=self.dag_id, run_id=run_id))
            if isinstance(answer, ErrorResponse):
                return f"the DAG {self.dag_id} could not be triggered: {answer.error.value}; trigger it"
            self.rung_at = time.monotonic()
        return f"the DAG {self.dag_id} was triggered"
