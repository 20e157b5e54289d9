"""A whole merge: every table on a branch of its own, in parallel, then the row that records the cut."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import LakeError
from penstock.lake import properties
from penstock.lake.ddl import CUTS_COLUMNS, CUTS_TABLE, add_columns, create_namespaces
from penstock.lake.plan import MergePlan, MergeResult, TablePlan, TableResult
from penstock.lake.pointers import Pointer
from penstock.lsn import Lsn
from penstock_spark import session as sessions
from penstock_spark import write
from penstock_spark.lake_table import LakeTable
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
        targets.append(_cuts_target(plan))
    for statement in create_namespaces(plan.catalog, [target[:-1] for target in targets]):
        session.sql(statement)


def _cuts_target(plan: MergePlan) -> tuple[str, ...]:
    return (*plan.namespace.split("."), CUTS_TABLE)


def _merge_tables(spark: SparkSession, plan: MergePlan, environment: Mapping[str, str]) -> list[TableResult]:
    def merge(session: SparkSession, order: TablePlan) -> TableResult:
        return merge_table(session, plan, order)

    return at_once(spark, plan.catalog, environment, merge, plan.tables, size=_bytes, workers=plan.parallel_tables)


def _bytes(order: TablePlan) -> int:
    return sum(file.bytes for file in (*order.files, *(order.copy_files or ())))


def record_cut(session: SparkSession, plan: MergePlan, tables: Sequence[TableResult]) -> tuple[Pointer, int]:
    """Stage one more row of `_penstock_cuts`; returns its pointer and snapshot."""
    marks = properties.watermark(plan.pipeline, plan.upto_lsn, plan.attempt)
    sessions.configure(session, properties.snapshot_conf(marks))
    cuts = LakeTable(session, plan.catalog, _cuts_target(plan), plan.branch)
    if not cuts.exists() and plan.cuts_expected_snapshot is None:
        cuts.create(CUTS_COLUMNS, properties.for_new_table(plan.pipeline, {}))
    if not cuts.exists() or not cuts.is_ours(plan.cuts_expected_snapshot):
        raise LakeError(
            "foreign-commit",
            f"expected {cuts.sql_name} at snapshot {plan.cuts_expected_snapshot}, got commits of somebody else; "
            "see the runbook",
        )
    there = {column.name for column in cuts.columns()}
    missing = [column for column in CUTS_COLUMNS if column.name not in there]
    if missing:  # made by an older Penstock
        session.sql(add_columns(plan.catalog, cuts.target, missing))
    cuts.cut_branch()
    row = {
        "cut_lsn": plan.upto_lsn,
        "lsn": str(Lsn(plan.upto_lsn)),
        "published_at": datetime.now(UTC).isoformat(),
        "attempt": plan.attempt,
        "tables": [_state(plan, table) for table in tables],
        "era": plan.era,
        "source_time": plan.source_time,
    }
    write.append(cuts, _one_row(session, row))
    return cuts.stage(marks), cuts.head()


def _one_row(session: SparkSession, row: Mapping[str, Any]) -> DataFrame:
    """Return a frame of one row of `_penstock_cuts`; a literal is planned at once, where Python's rows need a job."""
    schema = ", ".join(f"{column.name} {column.type}" for column in CUTS_COLUMNS)
    return session.range(0, 1, 1, 1).select(F.from_json(F.lit(json.dumps(row)), schema).alias("row")).select("row.*")


def _state(plan: MergePlan, table: TableResult) -> dict[str, Any]:
    paused = table.paused_slug is not None
    return {
        "name": ".".join(table.target),
        "snapshot_id": None if paused else table.snapshot_id,
        "complete_through": plan.from_lsn if paused else plan.upto_lsn,
        "state": "paused" if paused else "ready",
    }
