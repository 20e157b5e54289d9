"""A whole maintenance run: every table in turn, some at once, until the time budget is spent. Old tables go first: that frees room.

The catalog forgets an old table before its folder goes by name: so a run that is killed on the way is finished by the next one, and
nothing has to be read to know what to delete. A folder that is not the table's alone stays, and only the files go that the table's
own metadata names.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import LakeError
from penstock.jobs.maintenance_plan import (
    MaintenanceOrder,
    MaintenancePlan,
    MaintenanceResult,
    TableFolder,
    TableReport,
)
from penstock.lake.properties import owns_folder
from penstock.store_trouble import Trouble
from penstock_spark import clock, stores
from penstock_spark import session as sessions
from penstock_spark.failures import named, reason_to_pause, trouble
from penstock_spark.lake_table import LakeTable
from penstock_spark.parallel import at_once
from penstock_spark.session import iceberg_catalog
from penstock_spark.table_maintenance import TableMaintenance

_log = logging.getLogger("penstock.maintain")
_OUT_OF_TIME = "the time budget was spent; it comes first next time"


@named
def run(spark: SparkSession, plan: MaintenancePlan, environment: Mapping[str, str]) -> MaintenanceResult:
    """Carry out the plan; killed anywhere, the next run finds tables that are whole and continues."""
    started = time.monotonic()
    with sessions.worker(spark, plan.catalog, environment, reads=False) as session:
        clock.require_agreed(session, plan.catalog)

    def keep_up(session: SparkSession, order: MaintenanceOrder) -> TableReport:
        if time.monotonic() - started > plan.time_budget:
            return TableReport(order.target, order.oid, order.expected_snapshot, None, None, 0.0, left=_OUT_OF_TIME)
        try:
            report = TableMaintenance(_table(session, plan, order.target), plan, order).run()
        except Exception as error:
            cause = _cause(session, plan, order, environment, error)
            report = _left(session, order, cause, time.monotonic() - started)
        _log.info("%s", line(report))
        return report

    def drop(session: SparkSession, old: TableFolder) -> TableFolder | None:
        return _drop(session, plan, old)

    dropped = at_once(spark, plan.catalog, environment, drop, plan.old_tables, workers=plan.parallel_tables)
    reports = at_once(spark, plan.catalog, environment, keep_up, plan.tables, workers=plan.parallel_tables)
    if any(report.slug not in (None, "lake-unwritable") for report in reports):
        with sessions.worker(spark, plan.catalog, environment) as session:
            tables = (_table(session, plan, each.target).find() for each in reports if each.slug is None)
            stores.require_working(session, plan.catalog, environment, next(filter(None, tables), None))
    return MaintenanceResult(
        pipeline=plan.pipeline,
        attempt=plan.attempt,
        tables=tuple(reports),
        dropped=tuple(old for old in dropped if old is not None),
        seconds=round(time.monotonic() - started, 3),
    )


def line(report: TableReport) -> str:
    """Return a table's report as one line of a log."""
    name = ".".join(report.target)
    before, after = report.before, report.after
    if before is None or after is None:
        return f"{name}: left as it is: {report.left}"
    return (
        f"{name}: files {before.files} -> {after.files}, bytes {before.bytes} -> {after.bytes}, "
        f"delete files {before.delete_files} -> {after.delete_files}, snapshots {before.snapshots} -> {after.snapshots}, "
        f"{report.orphans} orphans, "
        f"{report.seconds:.1f} s{f' ({report.left})' if report.left else ''}"
    )


def _table(session: SparkSession, plan: MaintenancePlan, target: tuple[str, ...]) -> LakeTable:
    return LakeTable(session, plan.catalog, target)


def _drop(session: SparkSession, plan: MaintenancePlan, old: TableFolder) -> TableFolder | None:
    if plan.dry_run:
        return None
    known = (_table(session, plan, order.target) for order in plan.tables)
    io = next((there.java.io() for table in known if (there := table.find_if_readable()[0])), None)
    if io is None:
        return None
    others = plan.other_folders(old.place)
    return drop_old(_table(session, plan, (*old.namespace.split("."), old.table)), old, others, io)


def _cause(
    session: SparkSession,
    plan: MaintenancePlan,
    order: MaintenanceOrder,
    environment: Mapping[str, str],
    error: Exception,
) -> Exception:
    """Return why files could not be rewritten, which Iceberg only counts: what a file of nobody's meets there, or who reads the table."""
    if not isinstance(error, LakeError) or error.slug != "spark-failed":
        return error
    there = _table(session, plan, order.target)
    try:
        stores.require_working(session, plan.catalog, environment, there.find())
        session.table(there.sql_name).write.format("noop").mode("overwrite").save()
    except Exception as found:
        return found
    return error


def _left(session: SparkSession, order: MaintenanceOrder, error: Exception, seconds: float) -> TableReport:
    """Report a table that could not be maintained, where others may be; what was committed stays. Raises what concerns all.

    On a disk that is full, what goes from another table may make room.
    """
    failure = reason_to_pause(error, session, ".".join(order.target), ())
    if failure is None and trouble(error, session) is Trouble.FULL:
        failure = LakeError("lake-unwritable", f"expected the lake's store to take a file, got: {Trouble.FULL.value}")
    if failure is None:
        raise error
    known = order.target, order.oid, order.expected_snapshot
    return TableReport(*known, None, None, round(seconds, 3), left=failure.message, slug=failure.slug)


def drop_old(table: LakeTable, old: TableFolder, others: Sequence[str], io: Any) -> TableFolder | None:
    """Drop one old table through any table's `io`; return it, or None where its files cannot be separated from other tables'.

    `others` are the folders of all other tables. A table that the catalog no longer has was dropped by a run that died
    before it had deleted the files. One that it has again is another one.
    """
    there, lost = table.find_if_readable()
    location = there.folder if there else old.folder
    alone = owns_folder(location, others)
    if ((there or lost) and not old.listed) or not (alone or (there and location not in others)):
        _log.warning("%s.%s is kept: other tables have files in its folder", old.namespace, old.table)
        return None
    if alone:
        if there or lost:
            _purge(table, files=False)
        io.deletePrefix(f"{location.rstrip('/')}/")
    else:
        _purge(table, files=True)
    _log.info("%s.%s is dropped, with its files", old.namespace, old.table)
    return replace(old, folder=location)


def _purge(table: LakeTable, *, files: bool) -> None:
    """Drop a table without reading it, or with the files that its metadata names."""
    iceberg_catalog(table.session, table.catalog).dropTable(table.identifier(), files)
