"""A whole fill of the changelogs, several tables at once: each made or evolved, its interval replaced in one commit, and staged.

The engine writes the rows of the interval. Data files with rows of the interval alone go; of those with rows of other times
too, as after a compaction, deletion vectors take the interval's rows out.
"""

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from penstock.contract.manifest import microseconds
from penstock.engine import changelog as engine
from penstock.engine.files import Files
from penstock.engine.order import Column, NewFile, Resources
from penstock.errors import LakeError
from penstock.jobs.plans import ChangelogPlan, ChangelogResult, ChangelogTable, TableResult
from penstock.lake import changelog, properties
from penstock.lake.columns import LakeColumn
from penstock.lake.ddl import create_namespaces
from penstock_spark import clock, stores, table_layout
from penstock_spark import session as sessions
from penstock_spark.executors import Executors, stays_in_driver
from penstock_spark.failures import named
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.lake_table import LakeTable
from penstock_spark.landing import check_changes
from penstock_spark.outcome import outcome
from penstock_spark.parallel import at_once, threads_for
from penstock_spark.staging import Staging

_log = logging.getLogger("penstock.changelog")
TASK_BYTES = 64 << 20  # of landing Parquet, per task and file that it writes


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


def fill_table(
    session: SparkSession, plan: ChangelogPlan, order: ChangelogTable, environment: Mapping[str, str], threads: int
) -> TableResult:
    """Carry out one table's part of the plan, in the driver with so many threads.

    An error that concerns this table alone is part of the result.
    """
    idle, counts = TableResult(order.oid, order.target, None, None, {}, 0.0), Counter[str]()

    def work() -> TableResult:
        return _fill(session, plan, order, environment, threads, idle, counts)

    return outcome(session, idle, [file.uri for file in order.files], counts, work)


def _fill(
    session: SparkSession,
    plan: ChangelogPlan,
    order: ChangelogTable,
    environment: Mapping[str, str],
    threads: int,
    idle: TableResult,
    counts: Counter[str],
) -> TableResult:
    """Replace the interval; there is no pointer where nothing is to be written and nothing to be taken away."""
    table = LakeTable(session, plan.catalog, order.target)
    there = table.find()
    if there is None:
        if order.empty:
            return idle
        there = _create(plan, order, table)
    _require_ours(plan, table, there)
    there = _evolve(order, table, there)
    table_layout.require_known(table, there)
    start, end = microseconds(plan.from_time), microseconds(plan.upto_time)
    staged = Staging(table, there, {properties.PIPELINE: plan.pipeline, properties.ATTEMPT: plan.attempt})
    if there.main is not None:
        staged.plan_files({"committed_at": (start, end - 1)})
    whole = staged.whole({"committed_at": (start, end - 1)})
    wanted = _order(plan, order, staged, whole, threads)
    reached = stores.task_files(session, plan, environment, there.folder)
    check_changes(session, order.files)
    removed = engine.remove(wanted, reached)
    files = _write(session, wanted, reached)
    if not (files or removed.vectors or whole):
        return idle
    gone = sum(staged.live_rows(path) for path in whole) + removed.counts.get("rows_deleted", 0)
    staged.apply(replace(removed, files=files), whole)
    pointer, snapshot_id = staged.stage()
    counts.update(rows_written=sum(file.rows for file in files) - len(order.missing), rows_deleted=gone)
    return replace(idle, pointer=pointer, snapshot_id=snapshot_id)


def _write(session: SparkSession, order: engine.FillOrder, reached: Files) -> tuple[NewFile, ...]:
    """Let the engine write the rows of the interval: here, or in as many tasks as the cluster has room for."""
    context = session.sparkContext
    if not (order.landed or order.missing):
        return ()
    if stays_in_driver(context.master, sum(file.bytes for file in order.landed)):
        return engine.write(order, reached)
    parts = order.parts(TASK_BYTES)
    written = Executors(context)([partial(engine.write, part, reached) for part in parts])
    return tuple(file for files in written for file in files)


def _order(
    plan: ChangelogPlan, order: ChangelogTable, staged: Staging, whole: Collection[str], threads: int
) -> engine.FillOrder:
    table, there = staged.table, staged.there
    known = [column.name for column in changelog.changelog_columns(order.columns)]
    if missing := [name for name in known if name not in there.fields]:
        raise LakeError(
            "schema-change",
            f"expected {'.'.join(table.target)} to have the columns of a changelog, it has no {', '.join(missing)}; move it "
            "out of the way, then fill the interval again",
        )
    columns = [Column(each.name, each.type, there.ids(each.name)) for each in there.columns if each.name in known]
    new, old = (there.inner(image) for image in changelog.IMAGES)
    return engine.FillOrder(
        ids={column.name: column.ids for column in columns},
        fields=tuple(
            engine.ImageField(name, field.lake_type, (field.ids, old[name].ids)) for name, field in new.items()
        ),
        landed=order.files,
        missing=order.missing,
        target=tuple(file for path, file in staged.files.items() if path not in whole),
        start=microseconds(plan.from_time),
        end=microseconds(plan.upto_time),
        layout=table_layout.layout(table, there, columns),
        resources=Resources(threads, plan.task_memory),
    )


def _create(plan: ChangelogPlan, order: ChangelogTable, table: LakeTable) -> IcebergTable:
    known = properties.for_new_table(plan.pipeline, plan.table_properties, plan.era)
    table.create(changelog.changelog_columns(order.columns), known, changelog.PARTITIONED_BY)
    table.session.sql(f"alter table {table.sql_name} write locally ordered by {changelog.ORDERED_BY}")
    return IcebergTable(table.load())


def _require_ours(plan: ChangelogPlan, table: LakeTable, there: IcebergTable) -> None:
    if there.property(properties.PIPELINE) != plan.pipeline:
        raise LakeError(
            "foreign-commit",
            f"expected {'.'.join(table.target)} to be a changelog of {plan.pipeline}, it is another writer's table; "
            "move it out of the way, then fill the interval again",
        )


def _evolve(order: ChangelogTable, table: LakeTable, there: IcebergTable) -> IcebergTable:
    """Add the fields that the changelog lacks, widen others; return the table as it is then."""
    present = [LakeColumn(name, field.lake_type) for name, field in there.inner(changelog.IMAGES[0]).items()]
    fields = changelog.united(present, order.columns)
    if fields == tuple(present):
        return there
    update = table.load().updateSchema()
    for image in changelog.IMAGES:
        for before, now in zip(present, fields, strict=False):
            if before != now:
                update = table.widen(update, f"{image}.{now.name}", now.type)
        for added in fields[len(present) :]:
            update = update.addColumn(image, added.name, table.iceberg_type(added.type))
    update.commit()
    return IcebergTable(table.load())
