"""### Fill the changelogs: every change of every table, by intervals of commit time

**Does** wait -> fill. For its data interval, each run replaces in `<target>__changelog` of every table exactly the changes
whose transactions committed in it: old and new values, typed as in the mirror. It reads the landing zone only, and of
that only the files which hold such changes.

**Runs** at the times of `changelog.schedule`, each run for the interval that has just ended. Earlier intervals: backfill
them, in the UI or by `airflow backfill create`, in any order and number at once, finished ones too. By hand, for an
interval of your own: set `from` and `to`.

**Waits**, without taking a worker, until capture has passed the interval's end; for `changelog.wait` at most.

**Safe to repeat, to clear, to kill.** An interval is replaced as a whole, in one step, by one fill of the pipeline at a time.

**If it fails:** `interval-gone` names the first interval that the landing zone still holds whole; `interval-not-captured`
means that capture does not come as far; a table with a problem of its own is named, the others are filled.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from penstock.config.model import Pipeline
from penstock.flow.context import Context
from penstock.orchestration.assets import asset
from penstock.orchestration.changelog import WindowsSensor, interval
from penstock.orchestration.dags import dag_arguments, dags
from penstock.orchestration.operators import PenstockSparkOperator
from penstock.orchestration.tasks import BACKFILL_POOL

HOLD_SECONDS = 300.0  # Airflow runs one fill of a DAG at a time; this is for a fill by hand at the same time
TIME = {"type": ["null", "string"], "format": "date-time"}


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    settings = pipeline.changelog
    with DAG(
        **dag_arguments(pipeline, "changelog", __doc__) | {"max_active_runs": settings.max_active_runs},
        schedule=CronDataIntervalTimetable(settings.schedule, timezone="UTC") if settings.schedule else None,
        params={
            "from": Param(None, **TIME, description="where the interval begins; empty: that of the schedule"),
            "to": Param(None, **TIME, description="where it ends, itself not included; empty: that of the schedule"),
        },
    ) as dag:
        wait = WindowsSensor(
            task_id="wait",
            pipeline=pipeline.name,
            poke_interval=timedelta(seconds=60),
            timeout=timedelta(seconds=settings.wait),
        )

        def fill(ctx: Context, context: Any, submit: Any) -> dict[str, Any]:
            """Fill the interval in every changelog, in place of what was there; return it, and the number of changes it holds."""
            from penstock.flow.changelog import run as flow

            wanted = interval(context)
            filled = flow.fill(ctx, wanted, submit, wait=HOLD_SECONDS)
            return {"from": wanted.start.isoformat(), "to": wanted.end.isoformat(), "changes": filled.rows}

        (
            wait
            >> PenstockSparkOperator(
                task_id="fill",
                pipeline=pipeline,
                work=fill,
                pool=BACKFILL_POOL,
                max_active_tis_per_dag=1,  # a fill that waited for another one inside its task would hold a slot of Spark's pool
                outlets=[asset(pipeline, "changelog")],
                execution_timeout=timedelta(hours=6),
            )
        )
    return dag


globals().update(dags("changelog", build))
