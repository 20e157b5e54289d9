"""Tasks that several DAGs share: copy, load and publish (bootstrap, recover), build and switch (resync, replay)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import task

from penstock.config import Pipeline
from penstock.flow.merge import lake_lock
from penstock.flow.merge import run as merge
from penstock.orchestration.dag_defaults import lake_asset, outcome
from penstock.orchestration.notifications import deliver, send_counts
from penstock.orchestration.pipelines import context
from penstock.orchestration.spark import CopyOperator, MergeOperator, PenstockSparkOperator, SwitchOperator


def copying(pipeline: Pipeline) -> tuple[Any, Any]:
    """Return the first and the last task of copy -> load -> publish, inside a DAG."""
    copy = CopyOperator(
        task_id="copy",
        pipeline=pipeline.name,
        conn_id=pipeline.spark.connection,
        retries=2,
        execution_timeout=timedelta(days=2),
    )
    load, publish = merging(pipeline, "load", "publish")
    copy >> load
    return copy, publish


def rebuilding(pipeline: Pipeline, operator: type[PenstockSparkOperator]) -> Any:
    """Return the first of two tasks: build tables next to those that readers see, then let them take their names."""
    build = operator(
        task_id="build",
        pipeline=pipeline.name,
        conn_id=pipeline.spark.connection,
        execution_timeout=timedelta(days=2),
    )
    build >> SwitchOperator(
        task_id="switch",
        pipeline=pipeline.name,
        conn_id=pipeline.spark.connection,
        rebuilds=build.output,
        outlets=[lake_asset(pipeline)],
        execution_timeout=timedelta(hours=6),
    )
    return build


def merging(pipeline: Pipeline, prepare: str, publish: str, *, last: bool = False) -> tuple[Any, Any]:
    """Return two tasks, of these names: Spark prepares what is due, and one step publishes it.

    `last` makes them the last merge of an era, which takes what a halted pipeline has landed.
    """

    @task(task_id=publish, outlets=[lake_asset(pipeline)])
    def move(attempt: str | None) -> str:
        """Move every table to the new cut in one step."""
        ctx = context(pipeline)
        if attempt is None:
            return "nothing was due"
        with outcome(ctx), lake_lock.merge_lock(ctx):
            cut = merge.publish(ctx, attempt, last=last, deliver=deliver)
        send_counts(ctx.name, {f"{table['schema']}.{table['name']}": table.get("counts", {}) for table in cut.tables})
        return str(cut)

    spark = MergeOperator(
        task_id=prepare,
        pipeline=pipeline.name,
        conn_id=pipeline.spark.connection,
        last=last,
        execution_timeout=timedelta(hours=6),
    )
    return spark, move(spark.output)
