"""Rows of Airflow's metadata database as its scheduler writes them: DAGs that are paused or not, and tasks that run or wait."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import delete, insert

VERBS = ("bootstrap", "capture", "merge", "slot_health", "resync", "recover", "resume")


def make_dags(pipeline: str, *, paused: Collection[str] = (), missing: Collection[str] = ()) -> None:
    """The DAGs of a pipeline, in place of those that were there."""
    from airflow.models.dag import DagModel  # noqa: PLC0415  # after the throw-away home
    from airflow.models.dagbundle import DagBundleModel  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    forget(pipeline)
    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
        session.flush()
        for verb in set(VERBS) - set(missing):
            session.add(
                DagModel(
                    dag_id=f"{pipeline}.{verb}",
                    bundle_name="dags-folder",
                    is_paused=verb in paused,
                    is_stale=False,
                    max_active_tasks=16,
                    has_task_concurrency_limits=False,
                )
            )


def make_task(dag_id: str, task: str, state: str, *, pool: str = "penstock_spark", minutes: int = 3) -> str:
    """A task of a run of its own; returns the run's id."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.models.pool import Pool  # noqa: PLC0415
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    run_id, since = f"manual__{uuid4()}", datetime.now(UTC) - timedelta(minutes=minutes)
    begun = since if state == "running" else None
    with create_session() as session:
        Pool.create_or_update_pool(pool, slots=1, description="", include_deferred=False, session=session)
        run = {"dag_id": dag_id, "run_id": run_id, "run_type": "manual", "state": "running", "run_after": since}
        session.execute(insert(DagRun).values(**run, queued_at=since, clear_number=0, span_status="not_started"))
        times = {"start_date": begun, "queued_dttm": since, "scheduled_dttm": since}
        one = {"dag_id": dag_id, "run_id": run_id, "task_id": task, "state": state, "pool": pool, "map_index": -1}
        session.execute(insert(TaskInstance).values(id=uuid4(), **one, **times, pool_slots=1))
    return run_id


def forget(pipeline: str) -> None:
    """Let Airflow know nothing of a pipeline."""
    from airflow.models.dag import DagModel  # noqa: PLC0415
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as session:
        for model in (TaskInstance, DagRun, DagModel):
            session.execute(delete(model).where(model.dag_id.startswith(f"{pipeline}.")))
