"""The one place that reaches past Airflow's public API for tasks: the channel of a running task to its supervisor."""

from __future__ import annotations

from typing import Any

from airflow.sdk.execution_time import task_runner  # the channel is made only when a task begins to run


def ask(message: Any) -> Any:
    """Send one of `airflow.sdk.execution_time.comms`' requests and return its answer."""
    return task_runner.SUPERVISOR_COMMS.send(message)
