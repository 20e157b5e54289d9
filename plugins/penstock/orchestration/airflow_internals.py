"""All that Penstock uses of Airflow beyond its public interface: what moves in a later version is mended here, nowhere else.

`tests/dags/test_airflow_internals.py` holds each name against the Airflow that is installed, and says what to do when one is gone.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Collection
from datetime import datetime
from http import HTTPStatus
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError
from airflow.sdk.observability import stats
from sqlalchemy import case, false, func, or_, select
from sqlalchemy.exc import SQLAlchemyError

from penstock.flow.health.airflow_state import ActiveTask, AirflowState, DagState
from penstock.flow.spark_job import SparkJob

__all__ = [
    "describe_job",
    "exit_status",
    "is_lineage_wanted",
    "is_not_found",
    "page_access",
    "read_active_dags",
    "read_dags",
    "read_pools",
    "read_tasks",
    "spark_connection",
    "stats",
    "trigger_dag_run",
]
ACTIVE = ("running", "queued", "scheduled", "deferred", "up_for_retry", "up_for_reschedule", "restarting")
"""The states of a task that has begun or is due, and is not over."""
_MOST_TASKS = 500
_EXIT_STATUS = re.compile(r"Error code is: (\d+)")


def trigger_dag_run(dag_id: str, run_id: str, conf: dict[str, Any] | None) -> str | None:
    """Ask the supervisor of the running task for a run of another DAG; return why there is none."""
    from airflow.sdk.execution_time import task_runner  # the channel is made when a task begins to run
    from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun

    answer = task_runner.SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag_id, run_id=run_id, conf=conf))
    return str(answer.error.value) if isinstance(answer, ErrorResponse) else None


def is_not_found(error: AirflowRuntimeError) -> bool:
    """Return whether the supervisor's answer was that there is no such thing."""
    return (error.error.detail or {}).get("status_code") == HTTPStatus.NOT_FOUND


def is_lineage_wanted() -> bool:
    """Return whether the OpenLineage provider listens to the tasks of this process: its plugin imports this only if it does."""
    return "airflow.providers.openlineage.plugins.listener" in sys.modules


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


def exit_status(error: AirflowException) -> int | None:
    """Return the status with which `spark-submit` ended, as the provider's hook says it, where it does."""
    found = _EXIT_STATUS.search(str(error))
    return int(found[1]) if found else None


def page_access() -> Any:
    """Return what a FastAPI route depends on to be shown to those only who may see Airflow's plugins."""
    from airflow.api_fastapi.auth.managers.models.resource_details import AccessView  # the API server's
    from airflow.api_fastapi.core_api.security import requires_access_view

    return requires_access_view(AccessView.PLUGINS)


def read_dags(pipelines: Collection[str]) -> list[tuple[str, bool]]:
    """Return the DAGs of these pipelines, and whether each is paused; raises SQLAlchemyError."""
    from airflow.models.dag import DagModel  # the API server's
    from airflow.utils.session import create_session

    ours = or_(false(), *(DagModel.dag_id.startswith(f"{name}.", autoescape=True) for name in pipelines))
    known = select(DagModel.dag_id, DagModel.is_paused).where(ours, DagModel.is_stale.is_(False))
    with create_session(scoped=False) as session:
        return [(dag_id, bool(is_paused)) for dag_id, is_paused in session.execute(known)]


def read_active_dags(pipelines: Collection[str]) -> set[str]:
    """Return the DAGs of these pipelines of which a run is queued or running; raises SQLAlchemyError."""
    from airflow.models.dagrun import DagRun  # the API server's
    from airflow.utils.session import create_session

    active = select(DagRun.dag_id).where(DagRun.state.in_(("queued", "running"))).distinct()
    with create_session(scoped=False) as session:
        return {dag_id for dag_id in session.scalars(active) if dag_id.rpartition(".")[0] in pipelines}


def read_tasks() -> list[tuple[str, str, str, str, str, int, datetime | None, int]]:
    """Return the active tasks, those that run first: DAG, run, task, state, pool, slots, since when, map index; raises SQLAlchemyError."""
    from airflow.models.taskinstance import TaskInstance as Task  # the API server's
    from airflow.utils.session import create_session

    since = case((Task.state == "running", Task.start_date), else_=func.coalesce(Task.scheduled_dttm, Task.queued_dttm))
    columns = (Task.dag_id, Task.run_id, Task.task_id, Task.state, Task.pool, Task.pool_slots, since, Task.map_index)
    active = select(*columns).where(Task.state.in_(ACTIVE)).order_by(Task.state != "running", since).limit(_MOST_TASKS)
    with create_session(scoped=False) as session:
        return [tuple(row) for row in session.execute(active)]


def read_pools() -> dict[str, int]:
    """Return the slots of each pool; raises SQLAlchemyError."""
    from airflow.models.pool import Pool  # the API server's
    from airflow.utils.session import create_session

    with create_session(scoped=False) as session:
        return {each.pool: each.slots for each in session.scalars(select(Pool))}


log = logging.getLogger(__name__)


def airflow_state(pipelines: Collection[str], with_tasks: bool) -> AirflowState | None:  # as the page's `Ask`
    """Return how the DAGs of these pipelines stand, and with `with_tasks` what is under way; None if that cannot be read."""
    try:
        active = read_active_dags(pipelines)
        dags = {
            dag_id: DagState(paused=is_paused, under_way=dag_id in active) for dag_id, is_paused in read_dags(pipelines)
        }
        if not with_tasks or not dags:
            return AirflowState(dags)
        return AirflowState(dags, [ActiveTask(*each) for each in read_tasks()], read_pools())
    except SQLAlchemyError as error:
        log.warning("the page cannot read Airflow's metadata: %s", type(error).__name__)
        return None
