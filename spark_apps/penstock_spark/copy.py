"""A copy: every range of heap blocks is one task, which reads its rows under the exported snapshot and lands one file.

So many ranges run at once as the plan allows the source to serve. When the last range of a table has landed, the
table's result file is written: from then on it is copied, whatever becomes of this application. A table that cannot be
read leaves a file that says why, and the others are copied all the same.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.config.connections import Connection
from penstock.errors import PenstockError
from penstock.jobs import driver
from penstock.jobs.plans import CopyPlan, CopyRange
from penstock.landing import store
from penstock.landing.writer import CopyWriter, FetchedWriter
from penstock.landing.zone import LandingZone
from penstock_spark.failures import named

_log = logging.getLogger("penstock.copy")

Entry = dict[str, Any]
Options = Mapping[str, str]


@named
def run(spark: SparkSession, plan: CopyPlan, environment: Mapping[str, str]) -> None:
    """Copy every range; raises what the first failing one raised, after the running ones have ended.

    What concerns one table only fails that table: its other ranges are left out.
    """
    source = Connection.from_prefix("SOURCE", environment)
    # Executors may lack the variables that the driver has: what the landing zone needs travels like the source's login.
    options = store.given(plan.landing_options, {**os.environ, **environment})
    land_one = partial(land, plan, source=source, options=options)
    tables = Tables(plan, options)
    workers = ThreadPoolExecutor(plan.parallel, thread_name_prefix="copy")
    try:
        running = [workers.submit(_copy_one, spark, each, land_one, tables) for each in plan.ranges]
        done, _ = wait(running, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
    finally:
        workers.shutdown(cancel_futures=True)


def _copy_one(spark: SparkSession, range_: CopyRange, land_one: Callable[[CopyRange], Entry], tables: Tables) -> None:
    """Run one range as one task; logins and plan travel inside the closure, never in Spark's configuration."""
    if tables.failed(range_.oid):
        return

    def task(ranges: Iterable[CopyRange]) -> list[Entry]:
        return [land_one(each) for each in ranges]

    (entry,) = spark.sparkContext.parallelize([range_], 1).mapPartitions(task).collect()
    tables.landed(range_, entry)


def land(plan: CopyPlan, range_: CopyRange, *, source: Connection, options: Options) -> Entry:
    """Read one range and write its landing file, inside a task; return the manifest entry as plain data.

    `options` are those of the landing zone, secrets included. A range with a text that is no value of its lake type is
    read a second time, and landed as texts. A table that cannot be read gives an entry with `failed`, slug and message, an error
    that concerns all tables one with `ended`.
    """
    from penstock.source.reading import TableError  # noqa: PLC0415  # drivers are needed in tasks only

    zone = LandingZone.open(plan.landing_uri, options, {})
    try:
        try:
            return _land(plan, range_, source, zone)
        except pa.ArrowInvalid:
            return _land(plan, replace(range_, typed=()), source, zone)
    except TableError as error:
        return {"failed": {"slug": error.slug, "message": error.message}}
    except PenstockError as error:  # as data: Spark would hand on its text within a trace of Java's
        return {"ended": driver.dump_error(error)}


def _land(plan: CopyPlan, range_: CopyRange, source: Connection, zone: LandingZone) -> Entry:
    from penstock.source.copy import read_range  # noqa: PLC0415  # drivers are needed in tasks only

    writer = _writer(zone, range_)
    try:
        size, seconds = plan.batch_bytes, plan.seconds
        for batch in read_range(source, range_, snapshot_name=plan.snapshot_name, batch_bytes=size, seconds=seconds):
            writer.write(batch)
        return writer.close(oid=range_.oid).to_json()
    except BaseException:
        writer.abort()
        raise


def _writer(zone: LandingZone, range_: CopyRange) -> CopyWriter | FetchedWriter:
    if range_.commit_lsn is None:
        return zone.copy_writer(range_.path, range_.columns, dict(range_.typed))
    return FetchedWriter(zone.writer(range_.path, range_.columns), range_.attnums, range_.commit_lsn)


class Tables:
    """Count down the ranges of each table; prove a finished one by its result file, and say why another failed."""

    def __init__(self, plan: CopyPlan, options: Options) -> None:
        self._plan = plan
        self._zone = LandingZone.open(plan.landing_uri, options, {})
        self._left: dict[int, int] = defaultdict(int)
        for range_ in plan.ranges:
            self._left[range_.oid] += 1
        self._entries: dict[int, list[Entry]] = defaultdict(list)
        self._failed: set[int] = set()
        self._started = time.monotonic()
        self._lock = Lock()

    def failed(self, oid: int) -> bool:
        """Return whether a range of this table could not be read."""
        with self._lock:
            return oid in self._failed

    def landed(self, range_: CopyRange, entry: Entry) -> None:
        """Note what `land` gave for one range; after the last one of its table, write the table's result.

        Raises what ended a range and concerns all tables.
        """
        if "ended" in entry:
            raise driver.load_error(entry["ended"])
        with self._lock:
            oid = range_.oid
            if "failed" in entry:
                self._failed.add(oid)
                self._zone.write_text(f"{self._plan.result_folder}/{oid}.failed", json.dumps(entry["failed"]))
                _log.warning("%s.%s: [%s]", range_.relation_schema, range_.relation_name, entry["failed"]["slug"])
                return
            self._entries[oid].append(entry)
            self._left[oid] -= 1
            rows = sum(each["rows"] for each in self._entries[oid])
            name = f"{range_.relation_schema}.{range_.relation_name}"
            seconds = time.monotonic() - self._started
            if self._left[oid]:
                _log.info(
                    "%s: %d rows, %.1f s; %d ranges of the table left", name, entry["rows"], seconds, self._left[oid]
                )
                return
            result = {"files": self._entries[oid], "rows": rows}
            self._zone.write_text(f"{self._plan.result_folder}/{oid}.json", json.dumps(result))
            _log.info("%s: the table is copied, %d rows, %.1f s", name, rows, seconds)
