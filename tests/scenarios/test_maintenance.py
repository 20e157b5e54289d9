"""Maintenance on real servers: what a table shows stays, how it is stored changes; doubled, and together with merges. Killed: tests/faults.

One env serves all tests, with ledger and catalog in one database, as by default.
"""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.compare.lake_reader import lake_reader
from penstock.errors import ConfigError, LakeError, LedgerError
from penstock.flow import status
from penstock.flow.capture import run as capture
from penstock.flow.changelog import run as changelog
from penstock.flow.load import run as rebuild
from penstock.flow.load.run import discard
from penstock.flow.maintain import run as maintain
from penstock.flow.maintain.run import MaintenanceRun
from penstock.flow.merge import attempts
from penstock.flow.merge import run as merge
from penstock.flow.spark_job import SparkJob
from penstock.jobs.maintenance_plan import TableReport
from penstock.lake.ddl import CUTS_TABLE
from penstock.ledger.maintenance import Maintenance
from penstock_spark import maintain as maintaining
from tests.dying import dying
from tests.faults.conftest import NewPipeline
from tests.pipeline_env import PipelineEnv
from tests.scenarios.maintained import CHANGES, SHOP, folder, iceberg, snapshots
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def env(new_pipeline: NewPipeline) -> PipelineEnv:
    made = new_pipeline("maintained", SHOP, maintain={"patience": "1s"})
    busy(made, 5)
    return made


def busy(env: PipelineEnv, rounds: int, changes: str = CHANGES) -> None:
    """Change the tables, capture and merge, several times."""
    for _ in range(rounds):
        change(env, changes)
        env.merge()


def change(env: PipelineEnv, changes: str = CHANGES) -> None:
    """Change the source and capture it; the tests' servers commit asynchronously, so flush that first."""
    env.land(changes)


def maintained(env: PipelineEnv, **arguments: Any) -> tuple[MaintenanceRun, dict[str, TableReport]]:
    """Maintain, and return the report, also by the tables' names."""
    report = env.maintain(**arguments)
    assert report is not None
    return report, {table.target[-1]: table for table in report.lake.tables}


def equal(env: PipelineEnv) -> bool:
    """Return whether source and lake are equal, whole tables, and all of them are ready."""
    return env.unlike() == [] and {table.state for table in env.tables} == {"ready"}


def shown(env: PipelineEnv, table: str, snapshot: int) -> tuple[list[Any], list[Any]]:
    """Return the rows of a snapshot as Spark and as PyIceberg read them."""
    name = f"lake.{env.name}.public.{table}"
    env.spark.sql(f"refresh table {name}")
    by_spark = [tuple(row)[:-1] for row in env.spark.sql(f"select * from {name} version as of {snapshot}").collect()]
    with lake_reader("lake", env.ctx.catalog) as reader:
        found = reader.table((env.name, "public", table), snapshot)
        assert found is not None
        by_iceberg = pa.Table.from_batches(list(found.batches())).drop_columns("_misfits").to_pylist()
    return sorted(by_spark, key=str), sorted((tuple(row.values()) for row in by_iceberg), key=str)


# --- what it does -----------------------------------------------------------------------------------


def test_tables_are_compacted_swept_and_reported_and_source_and_lake_stay_equal(env: PipelineEnv) -> None:
    change(env)
    prepared = env.prepared()  # and no one publishes it
    mark = iceberg(env, "item").properties["penstock.lsn"]
    old, young = folder(env, "item") / "data" / "old.parquet", folder(env, "item") / "data" / "young.parquet"
    for orphan in (old, young):
        orphan.write_text("of a killed merge")
    long_ago = time.time() - 4 * 86400
    os.utime(old, (long_ago, long_ago))

    preview, _ = maintained(env, dry_run=True)
    report, tables = maintained(env)

    item, still = tables["item"], tables["still"]
    assert item.before is not None
    assert item.after is not None
    assert item.before.delete_files > 0
    assert (item.after.delete_files, item.after.deleted_rows, item.after.files) == (0, 0, 1)
    assert (item.orphans, old.exists(), young.exists()) == (1, False, True)
    assert still.before is not None
    assert still.after is not None
    assert (still.rewritten_files, still.after) == (0, replace(still.before, snapshots=still.after.snapshots))
    assert {table.left for table in report.lake.tables} == {None}
    assert all(table.before == table.after for table in preview.lake.tables), "a dry run changes nothing"
    assert iceberg(env, "item").properties["penstock.lsn"] == mark
    assert [ref for ref in iceberg(env, "item").refs() if ref.startswith("penstock_")] == []
    recorded = {table.name: table.snapshot_id for table in env.tables}
    assert recorded["item"] == item.snapshot_id == iceberg(env, "item").current_snapshot().snapshot_id

    with pytest.raises(LedgerError, match="ledger-conflict"):
        merge.publish(env.ctx, prepared)
    env.merge()
    assert equal(env)
    (newest,) = env.ctx.ledger.maintenance.all(env.name)
    assert newest.report is not None
    assert newest.report == json.loads(json.dumps(report.to_json()))
    lines = dict(status.lines(status.status(env.ctx)))
    assert "files" in lines["maintained"]


def test_a_maintenance_that_a_condition_ends_is_not_said_to_be_at_work(env16: PipelineEnv) -> None:
    env16.begin("create table item (id int primary key); insert into item values (1)")

    def refuse(_: SparkJob) -> None:
        raise LakeError("spark-failed", "expected a driver, got none")

    with pytest.raises(LakeError, match="spark-failed"):
        maintain.maintain(env16.ctx, refuse)

    said = dict(status.lines(status.status(env16.ctx)))["maintained"]
    assert "ended by [spark-failed] (docs/runbooks/spark-failed.md)" in said
    assert "at work" not in said


@pytest.mark.slow
def test_what_a_kept_cut_shows_stays_readable_and_what_no_cut_shows_goes(env: PipelineEnv) -> None:
    env.maintain()
    seen: dict[int, list[Any]] = {}
    for _ in range(3):
        busy(env, 1)
        seen[cut_snapshot(env, "item")] = sorted(
            [tuple(row) for row in env.sql("select id, name, price from item")], key=str
        )
    env.maintain()

    assert set(seen) <= snapshots(env, "item")
    for snapshot, rows in seen.items():
        assert shown(env, "item", snapshot) == (rows, rows)

    env.ledger.execute(
        "update penstock.cut set published_at = date_trunc('day', now(), 'UTC') - interval '40 days' "
        "+ number * interval '1 second' where pipeline = %s",
        env.name,
    )
    env.settings["maintain"] = {"patience": "1s", "cuts": "1s"}
    busy(env, 1)
    time.sleep(1.1)
    env.maintain()
    env.settings["maintain"] = {"patience": "1s"}
    assert not set(seen) & snapshots(env, "item"), "the cuts that showed them are older than maintain.daily_cuts"
    assert equal(env)


def cut_snapshot(env: PipelineEnv, table: str) -> int:
    """Return the snapshot that the last cut shows of a table."""
    cut = env.ctx.ledger.merges.last_cut(env.name)
    assert cut is not None
    return next(int(each["snapshot_id"]) for each in cut.tables if each["name"] == table)


@pytest.mark.slow
def test_windows_copies_and_runs_leave_the_landing_zone_when_nothing_needs_them(env: PipelineEnv) -> None:
    retention = {"landing": {"uri": str(env.landing), "retention": "1s"}}
    env.settings |= retention
    try:
        busy(env, 1)
        dead = env.landing / env.name / "windows" / "00000000DEADBEEF-00000000DEADBEF0" / "attempt" / "1.1.parquet"
        dead.parent.mkdir(parents=True)
        dead.write_text("of a killed capture")
        time.sleep(1.1)
        report, _ = maintained(env)
    finally:
        env.settings = {name: value for name, value in env.settings.items() if name not in retention}

    assert (report.landing.windows > 0, report.landing.copies) == (True, 4)
    assert not dead.exists()
    assert list((env.landing / env.name / "windows").iterdir()) == []
    assert list((env.landing / env.name / "copies").iterdir()) == []
    busy(env, 1)
    assert equal(env)


@pytest.mark.slow
def test_a_table_with_a_foreign_commit_is_left_alone_and_named(env: PipelineEnv) -> None:
    busy(env, 1, "update taken set note = note || '+'")
    env.spark.sql(f"delete from lake.{env.name}.public.taken where id = 7")
    before = snapshots(env, "taken")

    _, tables = maintained(env)

    assert tables["taken"].left is not None
    assert "did not publish" in tables["taken"].left
    assert snapshots(env, "taken") == before
    assert tables["item"].left is None
    # fixed: the row is back, and main is where the last merge left it
    expected = env.table("taken").snapshot_id
    env.spark.sql(f"call lake.system.rollback_to_snapshot('{env.name}.public.taken', {expected})")
    busy(env, 1)
    assert equal(env)


@pytest.mark.slow
def test_tables_that_made_way_are_dropped_with_their_files_when_their_time_is_over(env: PipelineEnv) -> None:
    for name in ("a", "b"):
        env.spark.sql(f"create namespace if not exists lake.{env.name}._penstock_era0")
        env.spark.sql(f"create table lake.{env.name}._penstock_era0.{name} using iceberg as select 1 as id")
    env.spark.sql(f"create namespace if not exists lake.{env.name}._penstock_era1")
    env.spark.sql(f"create table lake.{env.name}._penstock_era1.mine using iceberg as select 1 as id")
    env.spark.sql(f"create table lake.{env.name}.public.removed using iceberg as select 1 as id")
    removed = folder(env, "removed")
    discard(env.ctx, (env.name, "public", "removed"))
    warehouse = removed.parents[1]

    def names() -> set[str]:
        rows = env.ledger.execute(
            "select table_name from iceberg_tables where table_namespace like %s", f"{env.name}.%"
        )
        return {name for (name,) in rows}

    def files() -> list[Path]:
        folders = (warehouse / "_penstock_era0" / "a", warehouse / "_penstock_era0" / "b", removed)
        return [path for place in folders for path in place.rglob("*") if path.is_file()]

    env.maintain()
    assert {"a", "b", "mine"} <= names()
    assert len(files()) > 10
    env.ledger.execute(
        "update penstock.old_table set seen_at = seen_at - interval '8 days' where pipeline = %s", env.name
    )

    with dying(maintaining, "replace"):  # of the first one, dropped with its files and not reported
        env.maintain()
    assert not {"a", "b"} <= names()
    report, _ = maintained(env)
    assert {"a", "b", "removed"} == {old.table for old in report.lake.dropped}
    assert (files(), {"a", "b"} & names(), "mine" in names()) == ([], set(), True)
    assert equal(env)


@pytest.mark.slow
def test_a_name_that_was_taken_again_is_not_dropped(env: PipelineEnv) -> None:
    name = f"lake.{env.name}.public.back"
    env.spark.sql(f"create table {name} using iceberg as select 1 as id")
    discard(env.ctx, (env.name, "public", "back"))
    env.spark.sql(f"create table {name} using iceberg as select 2 as id")
    env.ledger.execute(
        "update penstock.old_table set seen_at = seen_at - interval '8 days' where pipeline = %s", env.name
    )

    report, _ = maintained(env)

    assert "back" not in {old.table for old in report.lake.dropped}
    assert [tuple(row) for row in env.spark.table(name).collect()] == [(2,)]
    env.spark.sql(f"drop table {name} purge")


def test_an_unknown_table_is_refused_before_any_work(env: PipelineEnv) -> None:
    before = env.ctx.ledger.maintenance.all(env.name)

    with pytest.raises(ConfigError, match=r"table-unknown.*public\.nope.*public\.item"):
        env.maintain(tables=["public.nope"])

    assert env.ctx.ledger.maintenance.all(env.name) == before


# --- killed, doubled, with merges --------------------------------------------------------------------


@pytest.mark.slow
def test_a_table_that_was_compacted_unnoticed_twice_is_still_ours(env: PipelineEnv) -> None:
    busy(env, 1, f"{CHANGES} update still set note = note || '+' where id < 20")
    for _ in range(2):
        with dying(Maintenance, "move_compacted"):  # Spark's work is done, and the ledger never hears of it
            env.maintain()
    env.merge(force=True)
    busy(env, 1, f"{CHANGES} update still set note = note || '+' where id < 20")
    assert equal(env)


@pytest.mark.slow
def test_only_one_works_on_the_lake_at_a_time_and_the_other_waits_or_says_who_has_it(env: PipelineEnv) -> None:
    env.settings |= {"lake": {"wait": "1s"}}
    with env.ctx.ledger.locks.hold(env.name, attempts.LAKE):
        for work in (env.maintain, env.merge):
            with pytest.raises(LedgerError, match=rf"work-under-way.*penstock {env.name} lake"):
                work()
    env.settings = {name: value for name, value in env.settings.items() if name != "lake"}

    held = ExitStack()
    held.enter_context(env.ctx.ledger.locks.hold(env.name, attempts.LAKE, wait=10))  # a session ends a little later
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(env.maintain) for _ in range(2)]
        time.sleep(1)
        assert not any(each.done() for each in both)
        held.close()
        first, second = (each.result() for each in both)
    assert first is not None
    assert second is not None
    assert first.attempt != second.attempt
    assert equal(env)


@pytest.mark.slow
def test_a_prepared_merge_is_published_before_maintenance_begins(env: PipelineEnv) -> None:
    env.settings["maintain"] = {"patience": "5m"}
    change(env)
    attempt = env.prepared()
    with ThreadPoolExecutor(1) as pool:
        maintenance = pool.submit(env.maintain)
        prepared = f"merge {attempt} is prepared"
        wait_until(lambda: any(prepared in line for line in env.lines), "maintenance notices the prepared merge")
        with merge.merge_lock(env.ctx):
            cut = merge.publish(env.ctx, attempt)
        maintenance.result()
    env.settings["maintain"] = {"patience": "1s"}

    assert cut.attempt == attempt
    assert equal(env)


@pytest.mark.slow
def test_changelogs_that_are_being_filled_are_left_and_those_that_are_maintained_are_not_filled(
    env: PipelineEnv,
) -> None:
    env.settings["changelog"] = {"slack": 0, "tables": {"include": ["public.item"]}}
    ((start,),) = env.sql("select clock_timestamp()")
    change(env)
    ((end,),) = env.sql("select clock_timestamp()")
    change(env)
    env.merge()
    env.changelog(start, end)

    with env.ctx.ledger.locks.hold(env.name, changelog.WORK):
        _, tables = maintained(env)
    assert "item__changelog" not in tables
    assert "changelogs are being filled: they are left for the next time" in env.lines

    def submit(job: SparkJob) -> None:
        with pytest.raises(LedgerError, match=rf"work-under-way.*changelog of {env.name}.*held by"):
            env.changelog(start, end)
        env.submit(job)

    report = maintain.maintain(env.ctx, submit)
    assert report is not None
    assert "item__changelog" in {table.target[-1] for table in report.lake.tables}
    assert env.changelog(start, end).rows > 0
    del env.settings["changelog"]
    assert equal(env)


@pytest.mark.slow
def test_a_resync_that_is_at_work_loses_nothing_to_maintenance(env: PipelineEnv) -> None:
    retention = {"landing": {"uri": str(env.landing), "retention": "1s"}}
    busy(env, 1)
    reports = []

    def submit(job: SparkJob) -> None:
        change(env)
        env.merge()
        time.sleep(1.1)
        env.settings |= retention
        reports.append(maintained(env)[0])
        env.submit(job)

    try:
        ids = rebuild.resync(env.ctx, ["public.item", "public.visit"], submit)
        change(env)
        env.maintain()
        assert rebuild.switch(env.ctx, ids, env.submit)
    finally:
        env.settings = {name: value for name, value in env.settings.items() if name not in retention}
    assert len(reports) == 2, "during the copy, and during the building"
    assert equal(env)
    busy(env, 1)
    assert equal(env)


@pytest.mark.slow
def test_a_merge_that_is_at_work_while_tables_are_compacted_is_merged_again_and_nothing_is_lost(
    env: PipelineEnv,
) -> None:
    change(env)
    attempt = env.plan()
    env.maintain()
    env.submit(merge.job(env.ctx, attempt))  # a Spark run that outlived its task

    with pytest.raises(LedgerError, match="ledger-conflict"):
        merge.publish(env.ctx, attempt)
    env.merge()
    assert equal(env)


@pytest.mark.slow
def test_without_time_the_tables_that_were_left_come_first_next_time(
    env: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy(env, 1)
    ticks = iter([0.0, 0.0, 1e9])
    with monkeypatch.context() as patched:
        patched.setattr(env, "settings", {**env.settings, "spark": {"parallel_tables": 1}})
        patched.setattr(maintaining, "time", _Clock(ticks))
        report, _ = maintained(env)
    done = [table.target for table in report.lake.tables if table.after]
    left = [table.target for table in report.lake.tables if table.left and "time budget" in table.left]
    assert (len(done), len(left)) == (1, len(report.lake.tables) - 1)
    assert {target[-1] for target in done + left} >= {"item", "visit", "still", "taken", CUTS_TABLE}

    report, _ = maintained(env)
    assert [table.target for table in report.lake.tables][-2] == done[0]
    assert equal(env)


class _Clock:
    """A clock whose time leaps."""

    def __init__(self, ticks: Iterator[float]) -> None:
        self._ticks = ticks
        self._last = 0.0

    def monotonic(self) -> float:
        self._last = next(self._ticks, self._last)
        return self._last


def test_a_cut_says_by_which_time_of_the_source_it_is_complete(env: PipelineEnv) -> None:
    before = datetime.now(UTC)
    change(env)
    ((late,),) = env.sql("select clock_timestamp()")
    env.merge()
    first = source_time(env)
    env.capture()  # nothing new: time passes all the same
    env.merge(force=True)
    second = source_time(env)

    assert before - DAY < first <= late <= second
    env.settings["capture"] = {"max_wal_bytes": 64}
    env.sql(f"{CHANGES} set synchronous_commit = on; select pg_logical_emit_message(true, 'flush', '')")
    assert capture.capture_window(env.ctx).behind > 0
    del env.settings["capture"]
    env.merge(force=True)
    assert source_time(env) == second, "the window ends long before what was committed then"
    env.follow()
    assert source_time(env) > second
    assert equal(env)


def source_time(env: PipelineEnv) -> datetime:
    """Return the newest cut's time of the source, as readers find it."""
    cuts = f"lake.{env.name}._penstock_cuts"
    env.spark.sql(f"refresh table {cuts}")
    ((seconds,),) = env.spark.sql(
        f"select cast(source_time as double) from {cuts} order by published_at desc limit 1"
    ).collect()
    return datetime.fromtimestamp(seconds, UTC)
