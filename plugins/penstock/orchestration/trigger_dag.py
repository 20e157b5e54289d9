"""Let another DAG of the pipeline run from inside a task: the merge of what was landed or is waited for, or a resync."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from penstock.config.model import Pipeline
from penstock.orchestration.airflow_internals import trigger_dag_run

_AGAIN_SECONDS = 300.0


def trigger(ti: Any, dag_id: str, conf: dict[str, Any] | None = None) -> str:
    """Trigger a DAG in the name of this task's; return what became of it, for the log."""
    run_id = f"{ti.dag_id.rpartition('.')[2]}__{datetime.now(UTC).isoformat()}"
    if why_not := trigger_dag_run(dag_id, run_id, conf):
        return f"the DAG {dag_id} could not be triggered: {why_not}; trigger it"
    paused = ti.get_dag(dag_id).is_paused
    return f"the DAG {dag_id} was triggered" + ("; it is paused: unpause it" if paused else "")


class MergeTrigger:
    """Trigger the merge DAG when asked, at most once in five minutes: runs queue one behind the other."""

    def __init__(self, ti: Any, pipeline: Pipeline) -> None:
        self.ti = ti
        self.dag_id = f"{pipeline.name}.merge"
        self.fired_at = float("-inf")
        self.said = ""

    def fire(self) -> str:
        """Return what is being waited for, for the log."""
        if self.ti.get_dag(self.dag_id).is_paused:
            return f"the DAG {self.dag_id} is paused: unpause it"
        if time.monotonic() - self.fired_at >= _AGAIN_SECONDS:
            self.said, self.fired_at = trigger(self.ti, self.dag_id), time.monotonic()
        return self.said


def wake_merge(ti: Any, pipeline: Pipeline) -> str | None:
    """Trigger the merge DAG where no run of it is there to take what was landed; return what became of it, for the log.

    The asset event of a task is sent when the task ends, which for a capture that repeats is a minute later.
    """
    dag_id = f"{pipeline.name}.merge"
    if ti.get_dag(dag_id).is_paused or ti.get_dr_count(dag_id, states=["queued", "running"]):
        return None
    return trigger(ti, dag_id)
