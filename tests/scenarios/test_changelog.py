"""The changelogs hold, per interval of commit time, exactly what the source did: a second slot says what that was."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.errors import LakeError, LedgerError
from penstock.flow.changelog import run as changelog
from penstock.flow.changelog.coverage import Interval, may_hold
from penstock.flow.errors import record_errors
from penstock.jobs.changelog_plan import ChangelogPlan
from penstock_spark import table_changelog
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.pipeline_env import PipelineEnv
from tests.scenarios import source_history
from tests.scenarios.changelogs import begin, flush, holds, logged, now
from tests.scenarios.recovery import flush as flush_only
from tests.scenarios.recovery import recovered

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def watched(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PipelineEnv, str]]:
    """One bootstrapped pipeline for the module, with the slot that watches its source."""
    with postgres16.temporary_database("changelogs") as source:
        world = PipelineEnv(
            source, lake.database, tmp_path_factory.mktemp("changelogs"), "changelogs", lake=lake, spark=spark
        )
        world.settings = {"source": {"slot": "penstock_changelogs", "publication": "penstock_changelogs"}}
        yield world, begin(world)


_keys = itertools.count(100)


def interval(world: PipelineEnv, *statements: str) -> Interval:
    """Let the source do this in an interval of its own, and capture it with a clock past its end."""
    start = now(world)
    for statement in statements or (f"insert into keyed (id) values ({next(_keys)})",):
        world.sql(statement)
    flush(world)
    end = now(world)
    flush(world)
    return Interval(start, end)


def table_name(world: PipelineEnv, table: str) -> str:
    return f"lake.{world.name}.public.{table}__changelog"


def snapshots(world: PipelineEnv, table: str) -> list[Any]:
    assert world.spark is not None
    world.spark.sql(f"refresh table {table_name(world, table)}")
    rows = world.spark.sql(f"select snapshot_id from {table_name(world, table)}.history order by made_current_at")
    return [row[0] for row in rows.collect()]


# --- what an interval holds --------------------------------------------------------------------------


def test_an_interval_holds_exactly_what_the_source_committed_in_it(watched: tuple[PipelineEnv, str]) -> None:
    world, slot = watched
    first = interval(
        world,
        "insert into keyed values (1, 'one', 1.50, '2024-02-29', '2024-02-29 12:00:00.5+02', '{1,2}', repeat('x', 5000))",
        "update keyed set name = 'ONE' where id = 1",
        "update keyed set id = 2 where id = 1; insert into keyed (id, day) values (3, 'infinity')",
        "insert into keyless values ('home', 1), ('home', 1), (null, null); delete from keyless where page is null",
        "insert into appended values (''), (null)",
        """insert into "Odd.Name" values (1, true); update "Odd.Name" set "a.b" = 2""",
    )
    second = interval(
        world,
        "delete from keyed where id = 2; update keyless set n = 2; truncate appended, keyed",
        "insert into keyed (id) values (9)",
    )

    filled = world.changelog(first.start, first.end)
    world.changelog(second.start, second.end)

    assert filled.rows == sum(table["rows"] for table in filled.tables) == 12
    assert holds(world, slot, "keyed", first.start, first.end) == ["I", "U", "U", "I"]
    assert holds(world, slot, "keyed", second.start, second.end) == ["D", "T", "I"]
    assert holds(world, slot, "keyless", first.start, first.end) == ["I", "I", "I", "D"]
    assert holds(world, slot, "keyless", second.start, second.end) == ["U", "U"]
    assert holds(world, slot, "appended", first.start, first.end) == ["I", "I"]
    assert holds(world, slot, "appended", second.start, second.end) == ["T"]
    assert holds(world, slot, "Odd.Name", first.start, first.end) == ["I", "U"]
    _, renamed, moved, infinite = logged(world, "keyed", first.start, first.end)
    assert (renamed["unknown"], renamed["new"]["body"]) == (["body"], None)
    assert (moved["old_kind"], moved["old"]["id"], moved["new"]["id"]) == ("K", 1, 2)
    assert (infinite["new"]["day"], infinite["new_misfits"], infinite["old_misfits"]) == (
        None,
        {"day": "infinity"},
        None,
    )


@pytest.mark.slow
def test_columns_added_dropped_and_changed_within_an_interval_are_all_in_its_changelog(
    watched: tuple[PipelineEnv, str],
) -> None:
    world, _ = watched
    world.sql("create table shaped (id int primary key, a text, b int)")
    world.sql(f"alter publication {world.ctx.pipeline.publication} add table shaped")
    whole = interval(
        world,
        "insert into shaped values (1, 'one', 1)",
        "alter table shaped add c date default '2024-01-01'; insert into shaped values (2, 'two', 2)",
        "alter table shaped drop a; insert into shaped values (3, 3)",
        "alter table shaped alter b type text using 'b' || b; insert into shaped values (4, 'four', '2024-02-29')",
    )

    world.changelog(whole.start, whole.end)

    found = [(row["new"], row["new_misfits"]) for row in logged(world, "shaped", whole.start, whole.end)]
    assert [row["id"] for row, _ in found] == [1, 2, 3, 4]
    assert [row["a"] for row, _ in found] == ["one", "two", None, None]
    texts = [str(row["b"]) if row["b"] is not None else misfits["b"] for row, misfits in found]
    assert texts == ["1", "2", "3", "four"]
    assert [str(row["c"]) for row, _ in found] == ["None", "2024-01-01", "2024-01-01", "2024-02-29"]


@pytest.mark.slow
def test_an_interval_across_two_eras_holds_both_and_names_what_lies_between(world16: PipelineEnv) -> None:
    slot = begin(world16)
    before = interval(world16, "insert into keyed (id, name) values (1, 'before')")
    world16.sql("insert into keyed (id, name) values (2, 'never captured')")
    flush_only(world16)
    world16.sql(f"select pg_drop_replication_slot('{world16.ctx.pipeline.slot}')")
    recovered(world16)
    after = interval(world16, "insert into keyed (id, name) values (3, 'after')")

    world16.changelog(before.start, after.end)

    found = [(row["era"], row["new"]["name"]) for row in logged(world16, "keyed", before.start, after.end)]
    assert found == [(1, "before"), (2, "after")]
    history = source_history.changes(world16, slot, "keyed")
    assert [change.new["name"] for change in history if change.new] == ["before", "never captured", "after"]
    warning = next(event for event in world16.ctx.ledger.events.all(world16.name) if event.slug == "interval-gone")
    assert "none was captured between" in warning.message
    assert "after era 1" in warning.message


# --- replacing --------------------------------------------------------------------------------------


def test_an_interval_is_replaced_in_one_commit_and_its_neighbours_stay(watched: tuple[PipelineEnv, str]) -> None:
    world, slot = watched
    before, during, after = (interval(world) for _ in range(3))
    for each in (after, before, during):
        world.changelog(each.start, each.end)
    assert world.spark is not None
    count = len(snapshots(world, "keyed"))

    world.spark.sql(f"delete from {table_name(world, 'keyed')} where committed_at >= timestamp '{during.start}'")
    assert logged(world, "keyed", during.start, after.end) == []
    world.changelog(during.start, during.end)

    assert len(snapshots(world, "keyed")) == count + 2, "one by hand, one of the fill"
    assert holds(world, slot, "keyed", before.start, before.end) == ["I"]
    assert holds(world, slot, "keyed", during.start, during.end) == ["I"]
    assert logged(world, "keyed", after.start, after.end) == [], "only the interval is replaced"
    world.changelog(before.start, after.end)
    world.changelog(before.start, after.end)
    assert holds(world, slot, "keyed", before.start, after.end) == ["I", "I", "I"]
    assert [fill.from_time for fill in world.ctx.ledger.changelogs.fills(world.name, since=before.start)] == [
        before.start
    ]


@pytest.mark.slow
def test_an_interval_is_replaced_after_a_compaction_has_mixed_it_with_others(watched: tuple[PipelineEnv, str]) -> None:
    world, slot = watched
    before, during, after = (interval(world) for _ in range(3))
    for each in (before, during, after):
        world.changelog(each.start, each.end)
    assert world.spark is not None
    name = table_name(world, "keyed")
    world.spark.sql(f"refresh table {name}")
    world.spark.sql(
        f"call lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    ).collect()
    world.spark.sql(f"refresh table {name}")
    assert world.spark.table(f"{name}.data_files").count() == 1

    world.changelog(during.start, during.end)

    for each in (before, during, after):
        assert holds(world, slot, "keyed", each.start, each.end) == ["I"]
    world.changelog(before.start, after.end)
    assert holds(world, slot, "keyed", before.start, after.end) == ["I", "I", "I"]


@pytest.mark.slow
def test_an_interval_without_changes_is_filled_and_one_that_lost_them_is_emptied(
    watched: tuple[PipelineEnv, str],
) -> None:
    world, _ = watched
    first = interval(world, "insert into keyless values ('a', 1)")
    world.changelog(first.start, first.end)
    start = now(world)
    flush(world)
    end = now(world)
    flush(world)
    assert world.changelog(start, end).rows == 0
    assert world.spark is not None
    moment = f"timestamp '{start + (end - start) / 2}'"
    world.spark.sql(f"insert into {table_name(world, 'keyless')} (op, committed_at) values ('I', {moment})")
    assert len(logged(world, "keyless", start, end)) == 1

    world.changelog(start, end)

    assert logged(world, "keyless", start, end) == []


# --- bounded ----------------------------------------------------------------------------------------


def test_only_the_intervals_own_files_are_read_and_of_those_only_its_row_groups(
    watched: tuple[PipelineEnv, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, slot = watched
    several = [interval(world) for _ in range(4)]
    both = interval(world, "insert into keyless values ('a', 1)")

    attempt = changelog.plan(world.ctx, several[1])
    orders = ChangelogPlan.loads(world.ctx.landing.read_text(f"{world.name}/runs/{attempt}/plan.json"))
    named = [file.uri for table in orders.tables for file in table.files]
    windows = {file.path: window for window in world.ctx.ledger.windows.all(world.name) for file in window.files}
    assert len(windows) > 5
    assert len(named) == 1
    (window,) = (window for path, window in windows.items() if named[0].endswith(path))
    assert window.files[0].rows == 1

    (path,) = (path for path in windows if both and path.split("/")[-1] in named[0] and named[0].endswith(path))
    statistics = pq.ParquetFile(world.landing / path).metadata.row_group(0)
    names = [statistics.column(place).path_in_schema for place in range(statistics.num_columns)]
    assert statistics.column(names.index("committed_at")).statistics.has_min_max
    plans: list[str] = []
    typed = table_changelog._typed

    def explained(changes: Any, *arguments: Any) -> Any:
        changes.sparkSession.conf.set("spark.sql.maxMetadataStringLength", "1000")
        plans.append(changes._jdf.queryExecution().toString())
        return typed(changes, *arguments)

    monkeypatch.setattr(table_changelog, "_typed", explained)
    world.changelog(several[1].start, several[1].end)
    (plan,) = plans
    assert "GreaterThanOrEqual(committed_at" in plan.split("PushedFilters")[1]
    assert "LessThan(committed_at" in plan.split("PushedFilters")[1]
    assert holds(world, slot, "keyed", several[1].start, several[1].end) == ["I"]


# --- one at a time ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_fills_of_one_interval_and_of_neighbours_end_as_one_after_the_other(
    watched: tuple[PipelineEnv, str],
) -> None:
    world, slot = watched
    one, two = interval(world), interval(world)
    together = threading.Barrier(3)

    def fill(each: Interval) -> int:
        together.wait()
        return changelog.fill(world.ctx, each, world.submit, wait=120).rows

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(fill, (one, one, two))) == [1, 1, 1]
    for each in (one, two):
        assert holds(world, slot, "keyed", each.start, each.end) == ["I"]


def test_a_fill_that_would_have_to_wait_says_for_whom(watched: tuple[PipelineEnv, str]) -> None:
    world, _ = watched
    one = interval(world)
    with world.ctx.ledger.locks.hold(world.name, changelog.WORK), pytest.raises(LedgerError) as caught:
        world.changelog(one.start, one.end)

    assert caught.value.slug == "work-under-way"
    assert f"penstock {world.name} changelog" in caught.value.message


@pytest.mark.slow
def test_a_spark_run_that_outlived_its_task_changes_nothing(watched: tuple[PipelineEnv, str]) -> None:
    world, slot = watched
    one = interval(world)
    overtaken = changelog.plan(world.ctx, one)
    world.submit(changelog.job(world.ctx, overtaken))
    silent = changelog.plan(world.ctx, one)
    world.changelog(one.start, one.end)
    filled = snapshots(world, "keyed")

    with pytest.raises(LakeError, match="publish-conflict"):
        changelog.settle(world.ctx, overtaken)
    with pytest.raises(LakeError, match="spark-failed"):
        changelog.settle(world.ctx, silent)
    world.submit(changelog.job(world.ctx, silent))

    assert snapshots(world, "keyed") == filled
    assert holds(world, slot, "keyed", one.start, one.end) == ["I"]


# --- what cannot be filled --------------------------------------------------------------------------


def test_an_interval_that_is_not_captured_yet_is_not_filled(watched: tuple[PipelineEnv, str]) -> None:
    world, slot = watched
    start = now(world)
    world.sql(f"insert into keyed (id) values ({next(_keys)})")
    end = now(world)

    with pytest.raises(LedgerError, match="interval-not-captured"):
        world.changelog(start, end)
    assert "through" in str(changelog.waiting(world.ctx, Interval(start, end)))
    flush(world)
    assert changelog.waiting(world.ctx, Interval(start, end)) is None
    world.changelog(start, end)

    assert holds(world, slot, "keyed", start, end) == ["I"]


def test_an_idle_source_does_not_keep_its_intervals_open(watched: tuple[PipelineEnv, str]) -> None:
    world, _ = watched
    flush(world)
    start = now(world)
    end = now(world)
    assert changelog.waiting(world.ctx, Interval(start, end)) is not None

    world.capture()

    assert changelog.waiting(world.ctx, Interval(start, end)) is None


def test_an_interval_in_the_future_and_one_before_the_beginning_are_refused(watched: tuple[PipelineEnv, str]) -> None:
    world, _ = watched
    time, day = now(world), timedelta(days=1)

    for start, end, slug in ((time, time + day, "interval-invalid"), (time - 9 * day, time - 8 * day, "interval-gone")):
        with pytest.raises(LedgerError) as caught:
            world.changelog(start, end)
        assert caught.value.slug == slug


def test_an_interval_whose_windows_are_gone_keeps_what_it_was_filled_with(watched: tuple[PipelineEnv, str]) -> None:
    world, slot = watched
    old, new = interval(world), interval(world)
    world.changelog(old.start, old.end)
    first_kept = min(window.from_lsn for window in world.ctx.ledger.windows.all(world.name) if _within(window, new))
    world.ledger.execute(
        "delete from penstock.window where pipeline = %s and from_lsn < %s::pg_lsn", world.name, str(first_kept)
    )

    with pytest.raises(LedgerError, match=r"interval-gone.*complete is \[") as caught:
        world.changelog(old.start, old.end)

    assert holds(world, slot, "keyed", old.start, old.end) == ["I"]
    named = datetime.fromisoformat(caught.value.message.split("complete is [")[1].split(" UTC")[0] + "+00:00")
    assert old.end - timedelta(seconds=1) <= named <= new.start + (old.end - old.start)
    world.changelog(new.start, new.end)
    assert holds(world, slot, "keyed", new.start, new.end) == ["I"]


def test_a_missing_landing_file_stops_the_interval_and_not_the_pipeline(watched: tuple[PipelineEnv, str]) -> None:
    world, slot = watched
    one = interval(world)
    (window,) = (window for window in world.ctx.ledger.windows.all(world.name) if _within(window, one))
    place = world.landing / window.files[0].path
    place.rename(world.landing / "aside")

    with pytest.raises(LedgerError, match="interval-gone") as caught, record_errors(world.ctx):
        world.changelog(one.start, one.end)

    assert window.files[0].path in caught.value.message
    assert world.ctx.ledger.pipelines.get(world.name).state == "running"
    (world.landing / "aside").rename(place)
    world.changelog(one.start, one.end)
    assert holds(world, slot, "keyed", one.start, one.end) == ["I"]


def _within(window: Any, wanted: Interval) -> bool:
    return any(may_hold(file, wanted) for file in window.files)


# --- late -------------------------------------------------------------------------------------------


def test_a_change_whose_commit_time_was_forged_is_told_with_the_interval_to_fill_again(
    watched: tuple[PipelineEnv, str],
) -> None:
    world, slot = watched
    filled, other = interval(world), interval(world)
    for each in (filled, other):
        world.changelog(each.start, each.end)
    forged = filled.start + (filled.end - filled.start) / 2

    by_origin(world, f"insert into keyed (id) values ({next(_keys)})", f"'{forged}'")
    flush(world)

    fills = {
        fill.from_time: fill.late_rows for fill in world.ctx.ledger.changelogs.fills(world.name, since=filled.start)
    }
    assert (fills[filled.start], fills[other.start]) == (1, 0)
    event = next(event for event in world.ctx.ledger.events.all(world.name) if event.slug == "changes-late")
    assert f"1 changes that claim to have committed in {filled} were captured after" in event.message
    world.changelog(filled.start, filled.end)
    assert holds(world, slot, "keyed", filled.start, filled.end) == ["I", "I"]
    assert logged(world, "keyed", filled.start, filled.end)[-1]["origin"] == "elsewhere"


@pytest.mark.slow
def test_a_change_that_is_captured_while_its_interval_is_filled_is_told_too(watched: tuple[PipelineEnv, str]) -> None:
    world, _ = watched
    filled = interval(world)
    forged = filled.start + (filled.end - filled.start) / 2

    def submit(job: Any) -> None:
        by_origin(world, f"insert into keyed (id) values ({next(_keys)})", f"'{forged}'")
        flush(world)
        world.submit(job)

    changelog.fill(world.ctx, filled, submit)

    (fill,) = world.ctx.ledger.changelogs.fills(world.name, since=filled.start)
    assert fill.late_rows == 1


def test_a_commit_time_beyond_the_calendar_is_told_and_stops_nothing(watched: tuple[PipelineEnv, str]) -> None:
    world, _ = watched
    by_origin(world, f"insert into keyed (id) values ({next(_keys)})", "'infinity'")
    flush(world)
    event = next(event for event in world.ctx.ledger.events.all(world.name) if event.slug == "changes-late")
    assert "no time of the calendar" in event.message

    after = interval(world)
    assert world.changelog(after.start, after.end).rows == 1


def by_origin(world: PipelineEnv, statement: str, time: str) -> None:
    """Commit a statement as a replication origin does: with a commit time of its choice."""
    world.sql(
        "select pg_replication_origin_create('elsewhere') "
        "where not exists (select from pg_replication_origin where roname = 'elsewhere')"
    )
    with world.source.connect() as connection:
        connection.execute("select pg_replication_origin_session_setup('elsewhere')")
        with connection.transaction():
            connection.execute(statement.encode())
            connection.execute(f"select pg_replication_origin_xact_setup('0/1', {time})".encode())


def test_the_watching_slot_sees_every_change(watched: tuple[PipelineEnv, str]) -> None:
    world, slot = watched
    world.sql("truncate keyed; insert into keyed (id) values (901), (902), (903)")
    flush(world)

    history = source_history.changes(world, slot, "keyed")

    last = max(place for place, change in enumerate(history) if change.op == "T")
    assert sum(change.op == "I" for change in history[last:]) == 3
