"""A whole merge: every table staged, in parallel, then the row that records the cut."""

import logging
import time
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from penstock.jobs.plans import MergePlan, MergeResult, TablePlan, TableResult
from penstock.lake.ddl import create_namespaces
from penstock.lsn import Lsn
from penstock_spark import clock, stores
from penstock_spark import session as sessions
from penstock_spark.cuts import cuts_target, open_cuts, record_cut
from penstock_spark.failures import named
from penstock_spark.lake_table import LakeTable
from penstock_spark.parallel import at_once, threads_for
from penstock_spark.progress import Progress
from penstock_spark.table_merge import merge_table, unmoved

_log = logging.getLogger("penstock.merge")


@named
def run(spark: SparkSession, plan: MergePlan, environment: Mapping[str, str]) -> MergeResult:
    """Prepare everything that the plan orders; nothing of it is visible until its pointers are moved."""
    started = time.monotonic()
    with sessions.worker(spark, plan.catalog, environment, reads=False) as session:
        clock.require_agreed(session, plan.catalog)
        _make_namespaces(session, plan)
        cuts = open_cuts(session, plan) if plan.cut else None  # before the work, which would be for nothing without it
        tables = _merge_tables(session, plan, environment)
        pointer, snapshot_id = record_cut(cuts, plan, tables) if cuts else (None, None)
        if any(table.failure for table in tables):
            there = cuts.there if cuts else LakeTable(session, plan.catalog, cuts_target(plan)).find_if_readable()[0]
            stores.require_working(session, plan.catalog, environment, there)
    seconds = time.monotonic() - started
    paused = sum(table.paused_slug is not None for table in tables)
    what = "cut" if plan.cut else "rebuilt through"
    _log.info("%s %s: %d tables, %d paused, %.1f s", what, Lsn(plan.upto_lsn), len(tables), paused, seconds)
    return MergeResult(
        pipeline=plan.pipeline,
        attempt=plan.attempt,
        upto_lsn=plan.upto_lsn,
        tables=tuple(tables),
        cuts=pointer,
        cuts_snapshot_id=snapshot_id,
        cuts_anew=str(cuts.anew) if cuts and cuts.anew else None,
        seconds=round(seconds, 3),
    )


def _make_namespaces(session: SparkSession, plan: MergePlan) -> None:
    targets = [order.fresh or order.target for order in plan.tables if order.expected_snapshot is None]
    targets += [order.target for order in plan.tables if order.fresh]
    targets += [each.to for each in plan.renames if each.kind != "aside"]
    for statement in create_namespaces(plan.catalog, [target[:-1] for target in targets]):
        session.sql(statement)


def _merge_tables(session: SparkSession, plan: MergePlan, environment: Mapping[str, str]) -> list[TableResult]:
    """Merge every table; one that fails for no known reason is tried once more, when all others are done."""
    busy = sum(bool(order.files or order.copy_files) for order in plan.tables)
    threads = threads_for(session, busy, plan.parallel_tables)
    progress = Progress(plan, environment)

    def merge(session: SparkSession, order: TablePlan) -> TableResult:
        result = merge_table(session, plan, order, environment, threads)
        if not result.failure:
            progress.merged(order)
        return result

    def merged(orders: Sequence[TablePlan]) -> list[TableResult]:
        return at_once(
            session, plan.catalog, environment, merge, orders, size=_bytes, workers=plan.parallel_tables, shared=session
        )

    results = {place: unmoved(order) for place, order in enumerate(plan.tables) if order.idle}
    waiting = [place for place in range(len(plan.tables)) if place not in results]
    for _ in range(2):
        results |= zip(waiting, merged([plan.tables[place] for place in waiting]), strict=True)
        waiting = [place for place in waiting if results[place].failure]
    return [results[place] for place in range(len(plan.tables))]


def _bytes(order: TablePlan) -> int:
    return sum(file.bytes for file in (*order.files, *(order.copy_files or ())))
