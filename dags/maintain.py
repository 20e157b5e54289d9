"""### Compact the lake's tables, and remove what is old: snapshots, files, landed windows, records

**Does** per table: puts small files together and rewrites those with many deleted rows,
expires the snapshots that no kept cut shows, and deletes files that belong to nothing. Then it drops tables
that were replaced longer ago than `maintain.old_tables`, forgets merged windows and loaded copies that are older than `landing.retention`
and deletes their files, and trims the ledger. The report, before and after, is in the log, in the ledger and on the
pipeline's page.

**Runs** at the times of `maintain.schedule`. By hand for a few `tables` (`schema.table`), or with `dry_run` to see the
figures without a change. It begins no further table once `maintain.time_budget` is spent; those come first next time.

**Safe to repeat, to clear, to kill.** No row is changed, every step leaves each table whole, and files go only after
nothing knows them any more. Merges and maintenance take turns; capture continues meanwhile.

**If it fails:** `work-under-way` means that a merge, or another maintenance, did not end in `lake.wait`: run it
again. `spark-failed`: what was committed stays, and the next run continues.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable

from penstock.config.model import Pipeline
from penstock.flow.context import Context
from penstock.orchestration.dags import dag_arguments, dags, dry_run
from penstock.orchestration.operators import PenstockSparkOperator
from penstock.orchestration.table_choices import tables_param


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    schedule = pipeline.maintain.schedule
    with DAG(
        **dag_arguments(pipeline, "maintain", __doc__),
        schedule=CronTriggerTimetable(schedule, timezone="UTC") if schedule else None,
        params={
            "tables": tables_param(pipeline, "only these tables, as schema.table; none means all"),
            "dry_run": dry_run(False),
        },
    ) as dag:

        def maintain(ctx: Context, context: Any, submit: Any) -> dict[str, Any] | None:
            """Maintain the tables that are named, or all; return what was done, as plain data."""
            from penstock.flow.maintain import run as flow

            params = context["params"]
            report = flow.maintain(ctx, submit, tables=params["tables"] or (), dry_run=bool(params["dry_run"]))
            return report.to_json() if report else None

        PenstockSparkOperator(
            task_id="maintain", pipeline=pipeline, work=maintain, execution_timeout=timedelta(hours=12)
        )
    return dag


globals().update(dags("maintain", build))
