"""How DAGs and tasks stand, as Airflow's metadata database has it: the API server, in which the page runs, may ask it; tasks may not."""

from __future__ import annotations

import logging
from collections.abc import Collection

from sqlalchemy.exc import SQLAlchemyError

from penstock.flow.health.airflow_state import ActiveTask, AirflowState
from penstock.flow.health.input import DagState
from penstock.orchestration.airflow_internals import read_active_dags, read_dags, read_pools, read_tasks

log = logging.getLogger(__name__)


def ask(pipelines: Collection[str], with_tasks: bool) -> AirflowState | None:  # as the page's `Ask`
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
