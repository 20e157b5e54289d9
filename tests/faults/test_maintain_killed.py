"""Maintenance killed between any two of its steps: readers notice nothing, merges continue, and the next run ends its work.

One env serves all tests, and each begins with something to do for every step. The process that is killed has a Spark
of its own, whose JVM dies with it, or has this one's, which outlives it.
"""

import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.compare.lake_reader import LakeReader, lake_reader
from penstock.errors import LedgerError
from penstock.flow.load import run as rebuild
from penstock.flow.load.run import Replay
from penstock.flow.maintain import run as maintain
from penstock.flow.merge import run as merge
from penstock.flow.spark_job import SparkJob
from penstock.jobs.maintenance_plan import TableFolder
from penstock.landing.layout import range_folder, windows_folder
from penstock.lsn import Lsn
from tests.faults.conftest import NewPipeline
from tests.faults.harness import killed
from tests.faults.steps import Kill, Step, called, slow
from tests.pipeline_env import PipelineEnv
from tests.scenarios import changelogs, source_history
from tests.scenarios.maintained import CHANGES, SHOP, folder, snapshots

pytestmark = pytest.mark.spark

ANEW = """
create table anew (id int primary key, note text);
insert into anew select n, 'anew ' || n from generate_series(1, 20) n;
"""
CHANGES_ANEW = """
update anew set note = note || '+' where id % 5 = 1;
insert into anew select max(id) + 1, 'new' from anew;
"""
WATCHED = ("item", "visit", "still")  # `again` is created all the time, so its snapshots have a table of their own
OF_THE_TASK: list[Kill] = [
    (Step.HISTORY_TRIMMED, "before", 1),
    (Step.HISTORY_TRIMMED, "after", 1),
    (Step.MERGE_BEGUN, "after", 1),
    (Step.MAINTENANCE_BEGUN, "after", 1),
    (Step.TEXT_WRITTEN, "after", 1),  # the plan
    (Step.COMPACTED_MOVED, "before", 1),  # Spark has done all of its part
    (Step.COMPACTED_MOVED, "after", 1),
    (Step.OLD_TABLES_FORGOTTEN, "after", 1),
    (Step.LANDED_FORGOTTEN, "before", 1),
    (Step.LANDED_FORGOTTEN, "after", 1),
    (Step.FOLDER_DELETED, "after", 1),
    (Step.FOLDER_DELETED, "after", 3),
    (Step.MAINTENANCE_ENDED, "before", 1),
    (Step.MAINTENANCE_ENDED, "after", 1),
]
OF_SPARK: list[Kill] = [
    (Step.COMPACTED, "before", 1),
    (Step.COMPACTED, "during", 1),
    (Step.COMPACTED, "after", 1),
    (Step.SNAPSHOTS_EXPIRED, "during", 1),
    (Step.SNAPSHOTS_EXPIRED, "after", 1),
    (Step.MANIFESTS_GATHERED, "after", 1),
    (Step.ORPHANS_DELETED, "after", 1),
    (Step.COMPACTED, "after", 4),
    (Step.SNAPSHOTS_EXPIRED, "after", 4),
    (Step.OLD_TABLES_DROPPED, "before", 1),
    (Step.LAKE_TABLE_DROPPED, "after", 1),
    (Step.OLD_TABLES_DROPPED, "after", 1),
    (Step.RESULT_WRITTEN, "before", 1),
    (Step.RESULT_WRITTEN, "after", 1),
]
CASES = [("maintain", *step) for step in OF_THE_TASK] + [("maintain:here", *step) for step in OF_SPARK]


@dataclass
class Shop:
    """A pipeline, what its cuts showed when they were published, and the slot that watches its source."""

    env: PipelineEnv
    slot: str
    shown: dict[str, dict[int, list[Any]]] = field(default_factory=lambda: {table: {} for table in WATCHED})
    filled: list[tuple[datetime, datetime]] = field(default_factory=list)

    def merge(self, *, force: bool = False) -> None:
        """Merge, and remember what the cut shows, by the source: nothing is written meanwhile."""
        self.env.ledger.execute(
            "update penstock.cut set published_at = published_at - interval '1 day' where pipeline = %s",
            self.env.name,
        )  # so each is the last one of its day
        self.env.merge(force=force)
        for table in WATCHED:
            self.shown[table][self.snapshot(table)] = rows(self.env.sql(f"select * from {table}"))

    def snapshot(self, table: str) -> int:
        """Return the snapshot that the last cut shows of a table."""
        cut = self.env.ctx.ledger.merges.last_cut(self.env.name)
        assert cut is not None
        return next(int(each["snapshot_id"]) for each in cut.tables if each["name"] == table)

    def change(self) -> tuple[datetime, datetime]:
        """Change the source and capture it; return the interval in which that was."""
        start = changelogs.now(self.env)
        self.env.sql(CHANGES + CHANGES_ANEW)
        changelogs.flush(self.env)
        end = changelogs.now(self.env)
        changelogs.flush(self.env)
        return start, end

    def busy(self) -> None:
        self.change()
        self.merge()

    def fill(self, interval: tuple[datetime, datetime]) -> None:
        self.env.changelog(*interval)
        self.filled.append(interval)


@dataclass(frozen=True)
class Due:
    """Name what a maintenance has to do away with, and an interval that no one has filled yet."""

    number: int
    orphan: Path
    folder: Path
    windows: set[Lsn]
    old_tables: list[Path]
    attempt: str
    unfilled: tuple[datetime, datetime]


@pytest.fixture(scope="module")
def shop(new_pipeline: NewPipeline) -> Shop:
    env = new_pipeline(
        "faults_maintain",
        SHOP + ANEW,
        landing={"retention": "1d"},
        changelog={"slack": 0, "tables": {"include": ["public.item"]}},
        maintain={"patience": "1s", "cuts": "1s", "daily_cuts": "6d", "old_tables": "1d", "history": "30d"},
    )
    source_history.watch(env, "watch_faults_maintain")
    made = Shop(env, "watch_faults_maintain")
    made.merge(force=True)
    return made


@pytest.mark.parametrize("case", slow(CASES), ids=called)
def test_whatever_step_is_the_last_readers_and_merges_continue_and_the_next_run_ends_it(
    shop: Shop, number: int, case: tuple[str, Step, str, int]
) -> None:
    due = let_be_due(shop, number)

    killed(shop.env, *case)

    everything_is_there(shop)
    shop.busy()
    assert shop.env.unlike() == []
    everything_is_there(shop)
    ends(shop, due)


@pytest.mark.slow
def test_a_spark_run_that_outlived_its_task_and_another_maintenance_changes_nothing_that_is_shown(
    shop: Shop, number: int
) -> None:
    due, env = let_be_due(shop, number), shop.env
    outlived: list[SparkJob] = []

    class Gone(Exception):
        """The task's end."""

    def dies(job: SparkJob) -> None:
        outlived.append(job)
        raise Gone

    with pytest.raises(Gone):
        maintain.maintain(env.ctx, dies)
    shop.busy()
    env.submit(*outlived)
    everything_is_there(shop)
    shop.busy()
    assert env.maintain() is not None
    env.submit(*outlived)  # it works on tables that have been maintained since

    everything_is_there(shop)
    ends(shop, due)


def let_be_due(shop: Shop, number: int) -> Due:
    """Let there be something to do for every step: small files, old cuts, windows and tables, and what killed runs left."""
    env = shop.env
    shop.busy()
    aged = {window.upto_lsn for window in env.ctx.ledger.windows.all(env.name)}
    for statement in (
        "update penstock.window set staged_at = staged_at - {0}, confirmed_at = confirmed_at - {0} where pipeline = %s",
        "update penstock.event set at = at - {0} where pipeline = %s",
    ):
        env.ledger.execute(statement.format("interval '40 days'"), env.name)
    ids = rebuild.resync(env.ctx, ["public.anew"], env.submit)
    shop.change()
    assert rebuild.switch(env.ctx, ids, env.submit)
    shop.merge(force=True)
    shop.fill(shop.change())
    shop.merge()
    unfilled = shop.change()
    attempt = env.prepared()  # and no one publishes it
    long_ago = time.time() - 4 * 86400
    orphan = folder(env, "item") / "data" / f"old{number}.parquet"
    orphan.write_text("of a killed merge")
    os.utime(orphan, (long_ago, long_ago))
    dead = env.landing / env.name / "windows" / f"00000000DEAD00{number:02}-00000000DEADFFFF"
    (dead / "attempt").mkdir(parents=True)
    (dead / "attempt" / "1.1.parquet").write_text("of a killed capture")
    return Due(number, orphan, dead, aged, set_aside(shop), attempt, unfilled)


def set_aside(shop: Shop) -> list[Path]:
    """See the tables that made way, long ago; return their folders."""
    env = shop.env
    found = env.ledger.execute(
        "select table_namespace, table_name, metadata_location from iceberg_tables where table_namespace like %s",
        f"{env.name}.\\_penstock\\_old%",
    )
    old = [TableFolder(namespace, table, place.rpartition("/metadata/")[0]) for namespace, table, place in found]
    env.ctx.ledger.maintenance.see_old_tables(env.name, old)
    env.ledger.execute(
        "update penstock.old_table set seen_at = seen_at - interval '2 days' where pipeline = %s", env.name
    )
    assert old
    return [Path(each.folder.removeprefix("file:")) for each in old]


# --- what must be there after a kill ----------------------------------------------------------------


def everything_is_there(shop: Shop) -> None:
    """Assert that readers see what they saw: tables, cuts, changelogs; and that the ledger's files exist."""
    env = shop.env
    with lake_reader("lake", env.ctx.catalog) as reader:
        for cut in env.ctx.ledger.merges.cuts(env.name, limit=1000):
            for entry in cut.tables:
                if entry["name"] in WATCHED:
                    found = read(shop, reader, entry["name"], entry["snapshot_id"])
                    assert found == shop.shown[entry["name"]].get(entry["snapshot_id"], found), cut.lsn
        for table in WATCHED:
            assert read(shop, reader, table) == shop.shown[table][shop.snapshot(table)]
    for interval in shop.filled:
        assert changelogs.holds(env, shop.slot, "item", *interval)
    landed = [entry.path for window in env.ctx.ledger.windows.all(env.name) for entry in window.files]
    copied = [entry.path for copy in env.ctx.ledger.loads.copies(env.name) for entry in copy.files]
    assert [path for path in (*landed, *copied) if not (env.landing / path).exists()] == []


def read(shop: Shop, reader: LakeReader, table: str, snapshot: int | None = None) -> list[Any]:
    """Return a table's rows as PyIceberg reads them, now or at a snapshot."""
    found = reader.table((shop.env.name, "public", table), snapshot)
    assert found is not None
    batches = pa.Table.from_batches(list(found.batches())).drop_columns("_misfits").to_pylist()
    return rows(tuple(row.values()) for row in batches)


def rows(found: Any) -> list[Any]:
    return sorted((tuple(row) for row in found), key=str)


# --- what the next run must end ---------------------------------------------------------------------


def ends(shop: Shop, due: Due) -> None:
    """Maintain once more, and assert that all that was due is done, and that nothing is missing that anybody needs."""
    env = shop.env
    report = env.maintain()

    assert report is not None
    assert {table.left for table in report.lake.tables} == {None}
    (newest,) = env.ctx.ledger.maintenance.all(env.name)
    assert (newest.attempt, newest.report is not None) == (report.attempt, True)
    (item,) = (table for table in report.lake.tables if table.target[-1] == "item")
    assert item.after is not None
    assert (item.after.delete_files, item.after.files, due.orphan.exists()) == (0, 1, False)
    assert [place for place in due.old_tables if any(each.is_file() for each in place.rglob("*"))] == []
    assert not due.folder.exists()
    windows = env.ctx.ledger.windows.all(env.name)
    assert due.windows.isdisjoint(window.upto_lsn for window in windows)
    known = {range_folder(env.name, window.from_lsn, window.upto_lsn) for window in windows}
    assert set(env.ctx.landing.folders(windows_folder(env.name))) <= known
    young = datetime.now(UTC) - timedelta(days=30)
    assert all(event.at > young for event in env.ctx.ledger.events.all(env.name))
    named = {e["snapshot_id"] for c in env.ctx.ledger.merges.cuts(env.name) for e in c.tables if e["name"] == "item"}
    there = snapshots(env, "item")
    assert named <= there
    assert not (shop.shown["item"].keys() - named) & there, "no cut shows them any more"
    everything_is_there(shop)
    with pytest.raises(LedgerError, match="ledger-conflict"):
        merge.publish(env.ctx, due.attempt)

    shop.fill(due.unfilled)
    suffix = f"as_{due.number}"
    rebuild.replay(env.ctx, Replay(("public.anew",), shadow=suffix), env.submit)
    assert sorted(row[:2] for row in env.lake_rows(f"anew__{suffix}")) == sorted(env.sql("select * from anew"))
    shop.busy()
    assert env.unlike() == []
    everything_is_there(shop)
