"""All that Penstock uses of Airflow beyond its public interface: what moves in a later version is mended here, nowhere else.

`tests/dags/test_airflow_internals.py` holds each name against the Airflow that is installed, and says what to do when one is gone.
"""

import logging
import re
import sys
from collections.abc import Collection
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
    "airflow_state",
    "describe_job",
    "exit_status",
    "is_lineage_wanted",
    "is_not_found",
    "page_access",
    "stats",
    "trigger_dag_run",
]
ACTIVE = ("running", "queued", "scheduled", "deferred", "up_for_retry", "up_for_reschedule", "restarting")
"""The states of a task that has begun or is due, and is not over."""
_MOST_TASKS = 500
log = logging.getLogger(__name__)
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


def airflow_state(pipelines: Collection[str], with_tasks: bool) -> AirflowState | None:  # as the page's `AirflowQuery`
    """Return how the DAGs of these pipelines stand, and with `with_tasks` the tasks that are active, those that run first.

    None if that cannot be read.
    """
    from airflow.models.dag import DagModel  # the API server's, as all these
    from airflow.models.dagrun import DagRun
    from airflow.models.pool import Pool
    from airflow.models.taskinstance import TaskInstance as Task
    from airflow.utils.session import create_session

    ours = or_(false(), *(DagModel.dag_id.startswith(f"{name}.", autoescape=True) for name in pipelines))
    known = select(DagModel.dag_id, DagModel.is_paused).where(ours, DagModel.is_stale.is_(False))
    runs = select(DagRun.dag_id).where(DagRun.state.in_(("queued", "running"))).distinct()
    since = case((Task.state == "running", Task.start_date), else_=func.coalesce(Task.scheduled_dttm, Task.queued_dttm))
    columns = (Task.dag_id, Task.run_id, Task.task_id, Task.state, Task.pool, Task.pool_slots, since, Task.map_index)
    tasks = select(*columns).where(Task.state.in_(ACTIVE)).order_by(Task.state != "running", since).limit(_MOST_TASKS)
    try:
        with create_session(scoped=False) as session:
            under_way = set(session.scalars(runs))
            dags = {
                each: DagState(paused=bool(paused), under_way=each in under_way)
                for each, paused in session.execute(known)
            }
            if not with_tasks or not dags:
                return AirflowState(dags)
            active = [ActiveTask(*each) for each in session.execute(tasks)]
            return AirflowState(dags, active, {each.pool: each.slots for each in session.scalars(select(Pool))})
    except SQLAlchemyError as error:
        log.warning("the page cannot read Airflow's metadata: %s", type(error).__name__)
        return None
