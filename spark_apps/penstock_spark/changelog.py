"""A whole fill of the changelogs: several tables at once."""

import logging
import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from penstock.jobs.plans import ChangelogPlan, ChangelogResult, ChangelogTable, TableResult
from penstock.lake.ddl import create_namespaces
from penstock_spark import clock
from penstock_spark import session as sessions
from penstock_spark.failures import named
from penstock_spark.parallel import at_once, threads_for
from penstock_spark.table_changelog import fill_table

_log = logging.getLogger("penstock.changelog")


@named
def run(spark: SparkSession, plan: ChangelogPlan, environment: Mapping[str, str]) -> ChangelogResult:
    """Prepare everything that the plan orders; nothing of it is visible until its pointers are moved."""
    started = time.monotonic()
    with sessions.worker(spark, plan.catalog, environment) as session:
        clock.require_agreed(session, plan.catalog)
        for statement in create_namespaces(
            plan.catalog, [table.target[:-1] for table in plan.tables if not table.empty]
        ):
            session.sql(statement)

    busy = sum(not table.empty for table in plan.tables)
    threads = threads_for(spark, busy, plan.parallel_tables)

    def fill(own: SparkSession, order: ChangelogTable) -> TableResult:
        return fill_table(own, plan, order, environment, threads)

    tables = at_once(
        spark,
        plan.catalog,
        environment,
        fill,
        plan.tables,
        size=lambda order: order.bytes,
        workers=plan.parallel_tables,
    )
    seconds = time.monotonic() - started
    rows = sum(table.counts.get("rows_written", 0) for table in tables)
    _log.info("changelog: %d changes in %d tables, %.1f s", rows, len(tables), seconds)
    return ChangelogResult(plan.pipeline, plan.attempt, tuple(tables), round(seconds, 3))
