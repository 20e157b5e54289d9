"""Merge of 20 million changes of one table on a cluster of this machine: Spark standalone with two workers, files in an S3 server.

Not among the parts that `make bench` measures by itself: it takes minutes and two gigabytes of disk. A twentieth of the changes move
rows to other keys, and half of these leave a column out. Counts are held to what the changes say.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pyarrow as pa

from bench import merge
from bench.figures import Figure
from bench.lake import ROOT
from bench.servers import SETTINGS
from penstock.landing import store
from penstock.landing.zone import LandingZone
from penstock.package import build
from stack import ports
from stack.cluster import object_store, standalone
from stack.cluster.standalone import Cluster
from stack.paths import Project
from stack.progress import Progress
from stack.secrets import Secrets
from stack.servers import lake_catalog
from stack.servers.binaries import from_wheel
from stack.servers.postgres import Database, Server
from stack.servers.postgres_user import Account, reachable_folder
from stack.spark import jars, java, spark_conf
from tests.conftest import LakeCatalog

if TYPE_CHECKING:
    from tests.spark.workbench import Workbench

ROWS = 8_000_000
CHANGES = 20_000_000
PART = 1_000_000
MOVED_TO = 1_000_000_000
TASK_MEMORY = 512 << 20
LANDED = "bench"


def measure(rows: int = ROWS, changes: int = CHANGES) -> list[Figure]:
    """Return `cluster_merge_changes_per_s` and `cluster_merge_task_peak_mib`, the largest Python worker's memory."""
    with _workbench() as bench:
        zone = LandingZone.open(f"s3://{object_store.LANDING}/{LANDED}", _options())
        table = bench.table(*merge.COLUMNS)
        table.files = [
            merge._write(zone, f"rows{start}.parquet", _inserts(start, PART)) for start in range(0, rows, PART)
        ]
        given = {"landing_uri": f"s3://{object_store.LANDING}/{LANDED}", "task_memory": TASK_MEMORY}
        given["landing_options"] = _options()
        bench.merge(**given)
        parts = changes // PART
        table.files = [
            merge._write(zone, f"changes{part}.parquet", _changes(part, parts, rows)) for part in range(parts)
        ]
        with _peak_of_workers() as peak:
            started = time.perf_counter()
            result = bench.prepare(**given)
            seconds = time.perf_counter() - started
    counts = result.tables[0].counts
    expected = _expected(parts, rows)
    assert result.tables[0].paused_slug is None, result.tables[0].paused_reason
    assert {name: counts[name] for name in expected} == expected, (counts, expected)
    return [
        Figure("cluster_merge_changes_per_s", changes / seconds, "changes/s"),
        Figure("cluster_merge_task_peak_mib", peak[0] / (1 << 20), "MiB", peak[0] / TASK_MEMORY),
    ]


@contextmanager
def _workbench() -> Iterator[Workbench]:
    """Start an object store, Spark's master and workers, and a catalog; lend a workbench."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        project = Project(ROOT, Path(made) / "cluster", on_cluster=True)
        project.local.mkdir()
        ours = Project.here()
        wanted = (*object_store.SERVER, *standalone.JARS)
        if missing := jars.missing(ours.jars, wanted):
            jars.fetch(missing, ours.jars, java.home(ours.jre), ours.logs / "fetch-jars.log")
        project.jars.symlink_to(ours.jars)
        chosen = {name: ports.choose() for name in standalone.PREFERRED_PORTS}
        cluster = Cluster(project, chosen, Secrets())
        library = Path(made) / "penstock.zip"
        build(ROOT, library)
        os.environ |= cluster.store.environment() | _tools(project)
        home = reachable_folder(Path(made), Account.for_postgres())
        control = Server(home / "control", from_wheel(home), ports.choose(), "only-for-the-bench", SETTINGS)
        try:
            control.start()
            cluster.start(_tools(project), Progress())
            with control.temporary_database("lake") as database, _spark(cluster, database, library) as bench:
                yield bench
        finally:
            for name in ("store", "spark-master", *standalone.WORKERS):
                cluster.session(name).stop()
            control.remove()


@contextmanager
def _spark(cluster: Cluster, database: Database, library: Path) -> Iterator[Workbench]:
    sys.path.insert(0, str(ROOT / "spark_apps"))
    from penstock_spark import session  # noqa: PLC0415  # they need the path
    from tests.spark.workbench import Workbench  # noqa: PLC0415

    lake_catalog.create_tables(database.dsn())
    settings = cluster.settings() | {
        "spark.master": cluster.master,
        "spark.submit.pyFiles": str(library),
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",  # the least that Spark takes: no row passes through the heap
    }
    spark_conf.write_conf(cluster.project.spark_conf, settings)
    reached = store.hadoop(f"s3://{object_store.LANDING}/{LANDED}", _options(), os.environ)
    os.environ[store.LANDING] = json.dumps(reached)
    session.log_to_stderr()
    spark = session.start("bench")
    lake = LakeCatalog(spark_conf.CATALOG, database, cluster.project.warehouse)
    try:
        with Workbench(spark, lake.environment(), database.connect, lake.name, cluster.project.local) as bench:
            yield bench
    finally:
        spark.stop()


def _tools(project: Project) -> dict[str, str]:
    return {
        "VIRTUAL_ENV": sys.prefix,
        "JAVA_HOME": str(java.home(Project.here().jre)),
        "SPARK_HOME": str(spark_conf.home()),
        "SPARK_CONF_DIR": str(project.spark_conf),
        "SPARK_LOCAL_IP": ports.LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
    }


def _options() -> dict[str, str]:
    return {
        "endpoint_override": os.environ[object_store.ADDRESS],
        "region": object_store.REGION,
        "access_key_env": object_store.ACCESS_KEY,
        "secret_key_env": object_store.SECRET_KEY,
    }


@contextmanager
def _peak_of_workers() -> Iterator[list[int]]:
    """Watch the Python workers of executors on this machine; the one number is the most bytes that one had."""
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            for process in psutil.process_iter(["cmdline", "memory_info"]):
                if "pyspark.daemon" in (process.info["cmdline"] or ()):
                    peak[0] = max(peak[0], process.info["memory_info"].rss)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield peak
    finally:
        ended.set()
        watching.join()


def _ranges(part: int, parts: int, rows: int) -> tuple[range, range, range]:
    """Return a part's own keys to delete, to move, and to insert; all others are updated, again and again."""
    deleted, moved, inserted = PART // 20, PART // 20, PART // 10
    return (
        range(rows - (part + 1) * deleted, rows - part * deleted),
        range(rows - parts * deleted - (part + 1) * moved, rows - parts * deleted - part * moved),
        range(rows + part * inserted, rows + (part + 1) * inserted),
    )


def _updated(part: int, parts: int, rows: int) -> np.ndarray:
    free = _ranges(parts - 1, parts, rows)[1].start
    return np.random.default_rng(part).choice(free, PART * 8 // 10)


def _expected(parts: int, rows: int) -> dict[str, int]:
    updated = len(np.unique(np.concatenate([_updated(part, parts, rows) for part in range(parts)])))
    moved, deleted, inserted = parts * PART // 20, parts * PART // 20, parts * PART // 10
    return {
        "rows_deleted": updated + moved + deleted,
        "rows_written": updated + moved + inserted,
        "update_missing": 0,
        "delete_missing": 0,
        "insert_existing": 0,
        "misfits": 0,
    }


def _inserts(start: int, count: int) -> pa.Table:
    return merge._inserts(np.arange(start, start + count))


def _changes(part: int, parts: int, rows: int) -> pa.Table:
    deleted, moved, inserted = (np.asarray(keys) for keys in _ranges(part, parts, rows))
    updated = _updated(part, parts, rows)
    known, unknown = np.array_split(moved, 2)
    kinds = [
        merge._updates(updated, np.zeros(len(updated), np.bool_)),
        _moves(known, np.zeros(len(known), np.bool_)),
        _moves(unknown, np.ones(len(unknown), np.bool_)),
        merge._deletes(deleted),
        merge._inserts(inserted),
    ]
    changes = pa.concat_tables(kinds)
    place = pa.array(np.random.default_rng(part).permutation(len(changes)) + part * PART)
    return changes.set_column(1, changes.schema.field("ordinal"), place).sort_by("ordinal")


def _moves(ids: np.ndarray, left_out: np.ndarray) -> pa.Table:
    arrived, departed = merge._updates(ids + MOVED_TO, left_out), merge._deletes(ids)
    for name in ("old", "old_kind"):
        at = arrived.schema.get_field_index(name)
        arrived = arrived.set_column(at, arrived.schema.field(name), departed[name])
    return arrived
