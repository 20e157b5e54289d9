"""A whole merge: every table on a branch of its own, in parallel, then the row that records the cut."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from penstock.lake.ddl import create_namespaces
from penstock.lake.plan import MergePlan, MergeResult, TablePlan, TableResult
from penstock.lsn import Lsn
from penstock_spark import session as sessions
from penstock_spark.cuts import cuts_target, record_cut
from penstock_spark.table_merge import merge_table
from penstock_spark.workers import at_once

_log = logging.getLogger("penstock.merge")


def run(spark: SparkSession, plan: MergePlan, environment: Mapping[str, str]) -> MergeResult:
    """Prepare everything that the plan orders; nothing of it is visible until its pointers are moved."""
    started = time.monotonic()
    with sessions.worker(spark, plan.catalog, environment) as session:
        _make_namespaces(session, plan)
        tables = _merge_tables(spark, plan, environment)
        cuts, snapshot_id = record_cut(session, plan, tables) if plan.cut else (None, None)
    seconds = time.monotonic() - started
    paused = sum(table.paused_slug is not None for table in tables)
    what = "cut" if plan.cut else "rebuilt through"
    _log.info("%s %s: %d tables, %d paused, %.1f s", what, Lsn(plan.upto_lsn), len(tables), paused, seconds)
    return MergeResult(
        pipeline=plan.pipeline,
        attempt=plan.attempt,
        upto_lsn=plan.upto_lsn,
        tables=tuple(tables),
        cuts=cuts,
        cuts_snapshot_id=snapshot_id,
        seconds=round(seconds, 3),
    )


def _make_namespaces(session: SparkSession, plan: MergePlan) -> None:
    targets = [order.fresh or order.target for order in plan.tables if order.expected_snapshot is None]
    targets += [order.target for order in plan.tables if order.fresh]
    if plan.cut and plan.cuts_expected_snapshot is None:
        targets.append(cuts_target(plan))
    for statement in create_namespaces(plan.catalog, [target[:-1] for target in targets]):
        session.sql(statement)


def _merge_tables(spark: SparkSession, plan: MergePlan, environment: Mapping[str, str]) -> list[TableResult]:
    def merge(session: SparkSession, order: TablePlan) -> TableResult:
        return merge_table(session, plan, order)

    return at_once(spark, plan.catalog, environment, merge, plan.tables, size=_bytes, workers=plan.parallel_tables)


def _bytes(order: TablePlan) -> int:
    return sum(file.bytes for file in (*order.files, *(order.copy_files or ())))
