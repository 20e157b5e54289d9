"""What reads cost after 100 merges, before and after one maintenance, against a freshly written table of the same rows.

Each merge changes one row in a hundred at random keys, the worst case: every file gets deleted rows. The three
tables are read in turn, every column of every row, and the medians of the times are compared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import cpu
from bench.figures import Figure
from bench.lake import workbench
from bench.merge import _deletes, _updates, _write, loaded
from penstock.contract.manifest import FileRef
from penstock.jobs.maintenance_plan import MaintenanceOrder, MaintenancePlan, MaintenanceResult
from penstock.lake.properties import STORAGE
from penstock.landing.zone import LandingZone
from penstock_spark import maintain
from tests.spark.workbench import Table, Workbench

ROWS = 2_000_000
MERGES = 100
CHANGED = ROWS // 100
SCANS = 9


def measure() -> list[Figure]:
    """Return `scan_before_maintain_ratio`, `scan_after_maintain_ratio` and `maintain_rows_per_s`."""
    with workbench() as bench:
        table = loaded(bench, ROWS)
        for number in range(MERGES):
            landed = _changes(bench.folder, number)
            table.files = [landed]
            bench.merge()
            Path(landed.uri.removeprefix("file://")).unlink()
        session, name = bench.session(), bench.name(table)
        fresh = f"{name[:-1]}_fresh`"
        storage = ", ".join(f"'{key}' = '{value}'" for key, value in STORAGE.items())
        session.sql(f"create table {fresh} using iceberg tblproperties ({storage}) as select * from {name}")

        def scan(which: str) -> Callable[[], None]:
            return lambda: bench.session().table(which).write.format("noop").mode("overwrite").save()

        before = _ratio(scan(name), scan(fresh))
        plan = _plan(bench, table)
        (seconds,) = cpu.spent(lambda: _check(maintain.run(bench.spark, plan, bench.environment)))
        after = _ratio(scan(name), scan(fresh))
        assert bench.session().table(name).count() == bench.session().table(fresh).count()
    return [
        Figure("scan_before_maintain_ratio", before, "x"),
        Figure("scan_after_maintain_ratio", after, "x"),
        Figure("maintain_rows_per_s", ROWS / seconds, "rows/s"),
    ]


def _ratio(scan: Callable[[], None], fresh: Callable[[], None]) -> float:
    """Return the median time of one scan over that of the other; the first of each is not counted."""
    times = [(*cpu.spent(scan), *cpu.spent(fresh)) for _ in range(SCANS + 1)][1:]
    return statistics.median(one for one, _ in times) / statistics.median(other for _, other in times)


def _plan(bench: Workbench, table: Table) -> MaintenancePlan:
    now = int(time.time() * 1000)
    return MaintenancePlan(
        pipeline=bench.namespace,
        attempt="z",
        catalog=bench.catalog,
        planned_at=now,
        read_since=now,
        orphans_before=now - 86_400_000,
        tables=(MaintenanceOrder(table.target, table.snapshot, (), table.oid),),
        old_tables=(),
        folders=(),
        deleted_share=0.1,
        small_files=5,
        file_bytes=None,
        time_budget=3600,
        parallel_tables=1,
    )


def _check(result: MaintenanceResult) -> None:
    (report,) = result.tables
    assert report.left is None, report.left
    assert report.after is not None
    assert report.after.delete_files == 0


def _changes(folder: Path, number: int) -> FileRef:
    """Land 90 % updates and 10 % deletes at random keys; a key that is gone already is updated into being again."""
    rng = np.random.default_rng(number)
    touched = rng.choice(ROWS, CHANGED, replace=False)
    updated, deleted = touched[CHANGED // 10 :], touched[: CHANGED // 10]
    changes = pa.concat_tables([_updates(updated, np.zeros(len(updated), bool)), _deletes(deleted)])
    ordinals = pa.array(rng.permutation(len(changes)))
    changes = changes.set_column(1, changes.schema.field("ordinal"), ordinals)
    return _write(LandingZone.open(str(folder), {}), f"changes.{number}.parquet", changes.sort_by("ordinal"))
