"""Memory of a merge: a batch larger than it spills, a row larger than it pauses that table alone, with the reason."""

import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bench import merge as bench
from penstock.engine import task
from penstock.engine.files import Files
from penstock.engine.order import Resources
from penstock.landing.zone import LandingZone
from tests.engine.folder_lake import FolderLake
from tests.spark.histories import UNCHANGED, I, U, tx
from tests.spark.workbench import column

MIB = 1 << 20
# in a process of its own: VmHWM is its peak alone
MERGE = """
import pickle, sys
from pathlib import Path
from penstock.engine import task
from penstock.engine.files import Files

answer = task.merge(pickle.load(sys.stdin.buffer), Files())
(peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(answer.counts["rows_written"], int(peak.split()[1]) >> 10)
"""
COLUMNS = (column("k", "int4", key=True), column("a"), column("n", "int4"))


@pytest.mark.slow
def test_a_row_larger_than_the_memory_pauses_its_table_and_says_what_to_raise(folder_lake: FolderLake) -> None:
    table, other = folder_lake.table(*COLUMNS), folder_lake.table(*COLUMNS)
    folder_lake.options["resources"] = Resources(memory_bytes=64 * MIB)
    folder_lake.land(table, tx(I(k=1, a="x" * (48 * MIB), n="1")))
    folder_lake.land(other, tx(I(k=1, a="x", n="1")))

    [result, fine] = folder_lake.merge()

    assert (result.paused_slug, fine.paused_slug) == ("merge-failed", None)
    assert "64 MiB of memory" in str(result.paused_reason)
    assert "raise spark.task_memory" in str(result.paused_reason)
    assert folder_lake.rows(table) == Counter()


def test_a_large_row_takes_a_few_times_its_size(folder_lake: FolderLake) -> None:
    table = folder_lake.table(*COLUMNS)
    folder_lake.options["resources"] = Resources(memory_bytes=112 * MIB)
    text = "x" * (16 * MIB)
    folder_lake.merge_of(table, tx(I(k=1, a=text, n="1")))
    folder_lake.land(table, tx(U(k=1, a=UNCHANGED, n="2")))

    [result] = folder_lake.merge()

    assert result.paused_slug is None
    assert folder_lake.rows(table) == Counter([("1", text, "2")])


@pytest.mark.slow
def test_a_batch_of_many_versions_of_a_wide_table_is_read_one_version_after_the_other(folder_lake: FolderLake) -> None:
    names = [f"c{n}" for n in range(150)]
    table = folder_lake.table(column("k", "int4", key=True), *map(column, names))
    folder_lake.options["resources"] = Resources(memory_bytes=112 * MIB)
    folder_lake.land(table, tx(I(k=1, **dict.fromkeys(names, "first"))))
    for number in range(30):  # later files lack more columns
        there = names[: len(names) - number]
        folder_lake.land(table, tx(U(k=1, **dict.fromkeys(there, str(number)))), names=["k", *there])

    [result] = folder_lake.merge()

    assert result.paused_reason is None
    [row] = folder_lake.rows(table)
    assert row[:3] == ("1", "29", "29")


@pytest.mark.slow
def test_two_million_changes_of_two_million_rows_stay_below_a_gibibyte(folder_lake: FolderLake, tmp_path: Path) -> None:
    table = folder_lake.table(*bench.COLUMNS)
    zone = LandingZone.open(str(tmp_path / "landed"), {})
    ids = np.arange(bench.SMALL)
    plain = {"resources": Resources(memory_bytes=512 * MIB)}
    rows = bench._write(zone, "rows.parquet", bench._inserts(ids))
    table.commit(task.merge(table.order_of([rows], **plain), Files()))
    changes = bench._write(zone, "changes.parquet", bench._updates(ids, np.zeros(len(ids), np.bool_)))

    order = pickle.dumps(table.order_of([changes], **plain))
    done = subprocess.run([sys.executable, "-c", MERGE], input=order, capture_output=True, check=True)

    written, peak = map(int, done.stdout.split())
    assert written == bench.SMALL
    assert peak < 1024
