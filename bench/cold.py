"""A merge in a fresh application, as every scheduled one is without lingering: `spark-submit` with the local stack's settings.

What is timed runs from submit to the application's end, its result written; the start of a JVM with an empty session is
measured beside it. Nothing is published, so every run does the same work.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import cpu
from bench.figures import Figure
from bench.lake import ROOT, workbench
from bench.merge import CHANGES, SMALL, changed, loaded, set_back
from penstock import package
from penstock.contract.manifest import FileRef
from penstock.landing.zone import LandingZone
from stack.paths import Project
from stack.spark import spark_conf
from tests.spark.workbench import Table, Workbench

TABLES, TABLE_ROWS, TABLE_CHANGES = 20, 10_000, 100
RUNS = 3
WARM_UPS = 8
EMPTY = """
from penstock_spark import session
session.start("empty").stop()
"""


@dataclass(frozen=True)
class Cost:
    """What a run took: seconds of the clock, and of all its processes' CPU."""

    wall: float
    cpu: float


def measure() -> list[Figure]:
    """Return what a small merge of many tables and a large one of one table cost in a fresh application, and warm."""
    with workbench() as bench:
        small = [loaded(bench, TABLE_ROWS) for _ in range(TABLES)]
        large = loaded(bench, SMALL)
        zone = LandingZone.open(str(bench.folder), {})
        few = changed(zone, TABLE_ROWS, TABLE_CHANGES)
        many = changed(zone, SMALL, CHANGES)
        submit = Submission(bench)
        empty = median([submit.empty() for _ in range(RUNS)])
        cold_small = median([submit.merge(ordered(bench, small, few)) for _ in range(RUNS)])
        cold_large = median([submit.merge(ordered(bench, [large], many)) for _ in range(RUNS)])
        warm = [here(bench, small, few) for _ in range(WARM_UPS + RUNS)][WARM_UPS:]
    return [
        Figure("spark_start_s", empty.wall, "s"),
        Figure("spark_start_cpu_s", empty.cpu, "CPU s"),
        Figure("merge_cold_s", cold_large.wall, "s", cold_large.wall - empty.wall),
        Figure("merge_20_tables_cold_s", cold_small.wall, "s", cold_small.wall - empty.wall),
        Figure("merge_20_tables_cold_cpu_s", cold_small.cpu, "CPU s", cold_small.cpu - empty.cpu),
        Figure("merge_20_tables_warm_s", median(warm).wall, "s"),
        Figure("merge_20_tables_warm_cpu_s", median(warm).cpu, "CPU s"),
    ]


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each."""
    return Cost(statistics.median(each.wall for each in costs), statistics.median(each.cpu for each in costs))


def ordered(bench: Workbench, tables: Sequence[Table], changes: FileRef) -> str:
    """Return a plan that merges the same changes into each of these tables, as JSON."""
    for table in tables:
        table.files = [changes]
    bench.tables = list(tables)
    plan = bench.plan(parallel_tables=2).dumps()
    for table in tables:
        table.files = []
    return plan


def here(bench: Workbench, tables: Sequence[Table], changes: FileRef) -> Cost:
    """Merge in this process."""
    from penstock.jobs.plans import MergePlan, MergeResult  # noqa: PLC0415
    from penstock_spark import merge  # noqa: PLC0415

    plan = MergePlan.loads(ordered(bench, tables, changes))
    with set_back(bench):
        results: list[MergeResult] = []
        cost = Cost(*cpu.spent(lambda: results.append(merge.run(bench.spark, plan, bench.environment)), os.getpid()))
    assert not any(table.paused_slug for table in results[0].tables)
    return cost


@dataclass(frozen=True)
class Submission:
    """Submit to a Spark of its own with the stack's settings, on the workbench's lake."""

    bench: Workbench

    def empty(self) -> Cost:
        """Start a session and end it."""
        script = self.bench.folder / "empty.py"
        script.write_text(EMPTY)
        return self._run(script)

    def merge(self, plan: str) -> Cost:
        """Carry out a plan."""
        orders, result = self.bench.folder / "plan.json", self.bench.folder / "result.json"
        orders.write_text(plan)
        result.unlink(missing_ok=True)
        with set_back(self.bench):
            cost = self._run(
                ROOT / "spark_apps" / "merge_changes.py", "--plan", f"file://{orders}", "--result", f"file://{result}"
            )
        assert not any(table["paused_slug"] for table in json.loads(result.read_text())["tables"])
        return cost

    def _run(self, *application: object) -> Cost:
        catalog = f"spark.sql.catalog.{spark_conf.CATALOG}"
        warehouse = Path(self.bench.spark.conf.get(f"{catalog}.warehouse", "").removeprefix("file://"))
        environment = os.environ | self.bench.environment | stack_environment(self.bench.folder, warehouse)
        library = self.bench.folder / "penstock.zip"
        package.build(ROOT, library)
        command = ["spark-submit", "--master", "local[2]", "--driver-memory", "1536m", "--py-files", str(library)]
        started = time.perf_counter()
        with (self.bench.folder / "submit.log").open("w") as log:
            process = subprocess.Popen([*command, *map(str, application)], env=environment, stdout=log, stderr=log)
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError((self.bench.folder / "submit.log").read_text()[-4000:])
        return Cost(time.perf_counter() - started, used.ru_utime + used.ru_stime)


def stack_environment(folder: Path, warehouse: Path) -> dict[str, str]:
    """Return what leads `spark-submit` to the local stack's settings, on another warehouse."""
    conf = folder / "conf"
    spark_conf.write_conf(conf, spark_conf.settings(Project.here().jars, warehouse, folder / "scratch"))
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"SPARK_CONF_DIR": str(conf), "PATH": programs}
