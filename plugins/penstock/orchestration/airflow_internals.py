"""All that Penstock uses of Airflow beyond its public interface: what moves in a later version is mended here, nowhere else.

`tests/dags/test_airflow_internals.py` holds each name against the Airflow that is installed, and says what to do when one is gone.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.observability import stats

from penstock.flow.spark_job import SparkJob

__all__ = ["describe_job", "is_not_found", "page_access", "spark_connection", "stats", "trigger_dag_run"]


def trigger_dag_run(dag_id: str, run_id: str, conf: dict[str, Any] | None) -> str | None:
    """Ask the supervisor of the running task for a run of another DAG; return why there is none."""
    from airflow.sdk.execution_time import task_runner  # noqa: PLC0415  # the channel is made when a task begins to run
    from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun  # noqa: PLC0415

    answer = task_runner.SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag_id, run_id=run_id, conf=conf))
    return str(answer.error.value) if isinstance(answer, ErrorResponse) else None


def is_not_found(error: AirflowRuntimeError) -> bool:
    """Return whether the supervisor's answer was that there is no such thing."""
    return (error.error.detail or {}).get("status_code") == HTTPStatus.NOT_FOUND


def spark_connection(operator: SparkSubmitOperator) -> str:
    """Return the id of the connection to which an operator submits."""
    return str(operator._conn_id)


def describe_job(operator: SparkSubmitOperator, job: SparkJob) -> None:
    """Let an operator submit this job: the provider takes these at construction only."""
    operator.application = str(job.application)
    operator.application_args = list(job.arguments)
    operator.py_files = str(job.py_files)
    operator.conf = dict(job.conf)
    operator.name = job.name
    operator._driver_memory = job.driver_memory
    operator._hook = None  # it holds the arguments of the job before


def page_access() -> Any:
    """Return what a FastAPI route depends on to be shown to those only who may see Airflow's plugins."""
    from airflow.api_fastapi.auth.managers.models.resource_details import AccessView  # noqa: PLC0415  # the API server's
    from airflow.api_fastapi.core_api.security import requires_access_view  # noqa: PLC0415

    return requires_access_view(AccessView.PLUGINS)
