"""The changelogs hold, per interval of commit time, exactly what the source did: a second slot says what that was."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.errors import LakeError, LedgerError
from penstock.flow.changelog import run as changelog
from penstock.flow.changelog.coverage import Interval, may_hold
from penstock.flow.guards import record_errors
from penstock.jobs.plans import ChangelogPlan
from penstock_spark import changelog as filling
from tests.faults.conftest import NewPipeline
from tests.pipeline_env import PipelineEnv
from tests.scenarios import source_history
from tests.scenarios.changelogs import begin, flush, holds, logged, now
from tests.scenarios.recovery import recovered

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def watched(new_pipeline: NewPipeline) -> tuple[PipelineEnv, str]:
    """One bootstrapped pipeline for the module, with the slot that watches its source."""
    env = new_pipeline("changelogs")
    return env, begin(env)


_keys = itertools.count(100)


def interval(env: PipelineEnv, *statements: str) -> Interval:
    """Let the source do this in an interval of its own, and capture it with a clock past its end."""
    start = now(env)
    for statement in statements or (f"insert into keyed (id) values ({next(_keys)})",):
        env.sql(statement)
    flush(env)
    end = now(env)
    flush(env)
    return Interval(start, end)


def table_name(env: PipelineEnv, table: str) -> str:
    return f"lake.{env.name}.public.{table}__changelog"


def snapshots(env: PipelineEnv, table: str) -> list[Any]:
    env.spark.sql(f"refresh table {table_name(env, table)}")
    rows = env.spark.sql(f"select snapshot_id from {table_name(env, table)}.history order by made_current_at")
    return [row[0] for row in rows.collect()]


# --- what an interval holds --------------------------------------------------------------------------


def test_an_interval_holds_exactly_what_the_source_committed_in_it(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    first = interval(
        env,
        "insert into keyed values (1, 'one', 1.50, '2024-02-29', '2024-02-29 12:00:00.5+02', '{1,2}', repeat('x', 5000))",
        "update keyed set name = 'ONE' where id = 1",
        "update keyed set id = 2 where id = 1; insert into keyed (id, day) values (3, 'infinity')",
        "insert into keyless values ('home', 1), ('home', 1), (null, null); delete from keyless where page is null",
        "insert into appended values (''), (null)",
        """insert into "Odd.Name" values (1, true); update "Odd.Name" set "a.b" = 2""",
    )
    second = interval(
        env,
        "delete from keyed where id = 2; update keyless set n = 2; truncate appended, keyed",
        "insert into keyed (id) values (9)",
    )

    filled = env.changelog(first.start, first.end)
    env.changelog(second.start, second.end)

    assert filled.rows == sum(table["rows"] for table in filled.tables) == 12
    assert holds(env, slot, "keyed", first.start, first.end) == ["I", "U", "U", "I"]
    assert holds(env, slot, "keyed", second.start, second.end) == ["D", "T", "I"]
    assert holds(env, slot, "keyless", first.start, first.end) == ["I", "I", "I", "D"]
    assert holds(env, slot, "keyless", second.start, second.end) == ["U", "U"]
    assert holds(env, slot, "appended", first.start, first.end) == ["I", "I"]
    assert holds(env, slot, "appended", second.start, second.end) == ["T"]
    assert holds(env, slot, "Odd.Name", first.start, first.end) == ["I", "U"]
    _, renamed, moved, infinite = logged(env, "keyed", first.start, first.end)
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
    env, _ = watched
    env.sql("create table shaped (id int primary key, a text, b int)")
    env.sql(f"alter publication {env.ctx.pipeline.publication} add table shaped")
    whole = interval(
        env,
        "insert into shaped values (1, 'one', 1)",
        "alter table shaped add c date default '2024-01-01'; insert into shaped values (2, 'two', 2)",
        "alter table shaped drop a; insert into shaped values (3, 3)",
        "alter table shaped alter b type text using 'b' || b; insert into shaped values (4, 'four', '2024-02-29')",
    )

    env.changelog(whole.start, whole.end)

    found = [(row["new"], row["new_misfits"]) for row in logged(env, "shaped", whole.start, whole.end)]
    assert [row["id"] for row, _ in found] == [1, 2, 3, 4]
    assert [row["a"] for row, _ in found] == ["one", "two", None, None]
    texts = [str(row["b"]) if row["b"] is not None else misfits["b"] for row, misfits in found]
    assert texts == ["1", "2", "3", "four"]
    assert [str(row["c"]) for row, _ in found] == ["None", "2024-01-01", "2024-01-01", "2024-02-29"]


@pytest.mark.slow
def test_columns_that_become_wider_become_so_in_the_changelog(env16: PipelineEnv) -> None:
    env16.settings["changelog"] = {"slack": 0}
    env16.bootstrap("create table shaped (id int primary key, l int[])", trigger=True)
    env16.capture()
    first = interval(env16, "insert into shaped values (1, '{1}')")
    env16.changelog(first.start, first.end)
    second = interval(
        env16,
        "insert into shaped values (2, '{2}')",
        "alter table shaped alter id type bigint, alter l type bigint[]",
        "insert into shaped values (3000000000, '{3000000000}')",
    )

    env16.changelog(second.start, second.end)

    found = [row["new"] for each in (first, second) for row in logged(env16, "shaped", each.start, each.end)]
    assert [(row["id"], row["l"]) for row in found] == [(1, [1]), (2, [2]), (3000000000, [3000000000])]


@pytest.mark.slow
def test_an_interval_across_two_eras_holds_both_and_names_what_lies_between(env16: PipelineEnv) -> None:
    slot = begin(env16)
    before = interval(env16, "insert into keyed (id, name) values (1, 'before')")
    env16.flush("insert into keyed (id, name) values (2, 'never captured')")
    env16.sql(f"select pg_drop_replication_slot('{env16.ctx.pipeline.slot}')")
    recovered(env16)
    after = interval(env16, "insert into keyed (id, name) values (3, 'after')")

    env16.changelog(before.start, after.end)

    found = [(row["era"], row["new"]["name"]) for row in logged(env16, "keyed", before.start, after.end)]
    assert found == [(1, "before"), (2, "after")]
    history = source_history.changes(env16, slot, "keyed")
    assert [change.new["name"] for change in history if change.new] == ["before", "never captured", "after"]
    warning = next(event for event in env16.ctx.ledger.events.all(env16.name) if event.slug == "interval-gone")
    assert "none was captured between" in warning.message
    assert "after era 1" in warning.message


# --- replacing --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_interval_is_replaced_in_one_commit_and_its_neighbours_stay(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    before, during, after = (interval(env) for _ in range(3))
    for each in (after, before, during):
        env.changelog(each.start, each.end)
    count = len(snapshots(env, "keyed"))

    env.spark.sql(f"delete from {table_name(env, 'keyed')} where committed_at >= timestamp '{during.start}'")
    assert logged(env, "keyed", during.start, after.end) == []
    env.changelog(during.start, during.end)

    assert len(snapshots(env, "keyed")) == count + 2, "one by hand, one of the fill"
    assert holds(env, slot, "keyed", before.start, before.end) == ["I"]
    assert holds(env, slot, "keyed", during.start, during.end) == ["I"]
    assert logged(env, "keyed", after.start, after.end) == [], "only the interval is replaced"
    env.changelog(before.start, after.end)
    env.changelog(before.start, after.end)
    assert holds(env, slot, "keyed", before.start, after.end) == ["I", "I", "I"]
    assert [fill.from_time for fill in env.ctx.ledger.changelogs.fills(env.name, since=before.start)] == [before.start]


@pytest.mark.slow
def test_an_interval_is_replaced_after_a_compaction_has_mixed_it_with_others(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    before, during, after = (interval(env) for _ in range(3))
    for each in (before, during, after):
        env.changelog(each.start, each.end)
    name = table_name(env, "keyed")
    env.spark.sql(f"refresh table {name}")
    env.spark.sql(
        f"call lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    ).collect()
    env.spark.sql(f"refresh table {name}")
    assert env.spark.table(f"{name}.data_files").count() == 1

    env.changelog(during.start, during.end)

    for each in (before, during, after):
        assert holds(env, slot, "keyed", each.start, each.end) == ["I"]
    env.changelog(before.start, after.end)
    assert holds(env, slot, "keyed", before.start, after.end) == ["I", "I", "I"]


@pytest.mark.slow
def test_an_interval_without_changes_is_filled_and_one_that_lost_them_is_emptied(
    watched: tuple[PipelineEnv, str],
) -> None:
    env, _ = watched
    first = interval(env, "insert into keyless values ('a', 1)")
    env.changelog(first.start, first.end)
    start = now(env)
    flush(env)
    end = now(env)
    flush(env)
    assert env.changelog(start, end).rows == 0
    moment = f"timestamp '{start + (end - start) / 2}'"
    env.spark.sql(f"insert into {table_name(env, 'keyless')} (op, committed_at) values ('I', {moment})")
    assert len(logged(env, "keyless", start, end)) == 1

    env.changelog(start, end)

    assert logged(env, "keyless", start, end) == []


# --- bounded ----------------------------------------------------------------------------------------


def test_only_the_intervals_own_files_are_read_and_their_row_groups_have_bounds_of_time(
    watched: tuple[PipelineEnv, str],
) -> None:
    env, slot = watched
    several = [interval(env) for _ in range(4)]
    both = interval(env, "insert into keyless values ('a', 1)")

    attempt = changelog.plan(env.ctx, several[1])
    orders = ChangelogPlan.loads(env.ctx.landing.read_text(f"{env.name}/runs/{attempt}/plan.json"))
    named = [file.uri for table in orders.tables for file in table.files]
    windows = {file.path: window for window in env.ctx.ledger.windows.all(env.name) for file in window.files}
    assert len(windows) > 5
    assert len(named) == 1
    (window,) = (window for path, window in windows.items() if named[0].endswith(path))
    assert window.files[0].rows == 1

    (path,) = (path for path in windows if both and path.split("/")[-1] in named[0] and named[0].endswith(path))
    statistics = pq.ParquetFile(env.landing / path).metadata.row_group(0)
    names = [statistics.column(place).path_in_schema for place in range(statistics.num_columns)]
    assert statistics.column(names.index("committed_at")).statistics.has_min_max
    env.changelog(several[1].start, several[1].end)
    assert holds(env, slot, "keyed", several[1].start, several[1].end) == ["I"]


def test_executors_write_a_changelog_in_parts_as_the_driver_does(
    watched: tuple[PipelineEnv, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    env, slot = watched
    one, two = interval(env), interval(env)
    monkeypatch.setattr(filling, "stays_in_driver", lambda *sizes: False)
    monkeypatch.setattr(filling, "TASK_BYTES", 1)

    assert env.changelog(one.start, two.end).rows == 2

    assert holds(env, slot, "keyed", one.start, two.end) == ["I", "I"]


# --- one at a time ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_fills_of_one_interval_and_of_neighbours_end_as_one_after_the_other(
    watched: tuple[PipelineEnv, str],
) -> None:
    env, slot = watched
    one, two = interval(env), interval(env)
    together = threading.Barrier(3)

    def fill(each: Interval) -> int:
        together.wait()
        return changelog.fill(env.ctx, each, env.submit, wait=120).rows

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(fill, (one, one, two))) == [1, 1, 1]
    for each in (one, two):
        assert holds(env, slot, "keyed", each.start, each.end) == ["I"]


def test_a_fill_that_would_have_to_wait_says_for_whom(watched: tuple[PipelineEnv, str]) -> None:
    env, _ = watched
    one = interval(env)
    with env.ctx.ledger.locks.hold(env.name, changelog.WORK), pytest.raises(LedgerError) as caught:
        env.changelog(one.start, one.end)

    assert caught.value.slug == "work-under-way"
    assert f"penstock {env.name} changelog" in caught.value.message


@pytest.mark.slow
def test_a_spark_run_that_outlived_its_task_changes_nothing(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    one = interval(env)
    overtaken = changelog.plan(env.ctx, one)
    env.submit(changelog.job(env.ctx, overtaken))
    silent = changelog.plan(env.ctx, one)
    env.changelog(one.start, one.end)
    filled = snapshots(env, "keyed")

    with pytest.raises(LakeError, match="publish-conflict"):
        changelog.publish(env.ctx, overtaken)
    with pytest.raises(LakeError, match="spark-failed"):
        changelog.publish(env.ctx, silent)
    env.submit(changelog.job(env.ctx, silent))

    assert snapshots(env, "keyed") == filled
    assert holds(env, slot, "keyed", one.start, one.end) == ["I"]


# --- what cannot be filled --------------------------------------------------------------------------


def test_an_interval_that_is_not_captured_yet_is_not_filled(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    start = now(env)
    env.sql(f"insert into keyed (id) values ({next(_keys)})")
    end = now(env)

    with pytest.raises(LedgerError, match="interval-not-captured"):
        env.changelog(start, end)
    assert "through" in str(changelog.waiting(env.ctx, Interval(start, end)))
    flush(env)
    assert changelog.waiting(env.ctx, Interval(start, end)) is None
    env.changelog(start, end)

    assert holds(env, slot, "keyed", start, end) == ["I"]


def test_an_idle_source_does_not_keep_its_intervals_open(watched: tuple[PipelineEnv, str]) -> None:
    env, _ = watched
    flush(env)
    start = now(env)
    end = now(env)
    assert changelog.waiting(env.ctx, Interval(start, end)) is not None

    env.capture()

    assert changelog.waiting(env.ctx, Interval(start, end)) is None


def test_an_interval_in_the_future_and_one_before_the_beginning_are_refused(watched: tuple[PipelineEnv, str]) -> None:
    env, _ = watched
    time, day = now(env), timedelta(days=1)

    for start, end, slug in ((time, time + day, "interval-invalid"), (time - 9 * day, time - 8 * day, "interval-gone")):
        with pytest.raises(LedgerError) as caught:
            env.changelog(start, end)
        assert caught.value.slug == slug


def test_an_interval_whose_windows_are_gone_keeps_what_it_was_filled_with(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    old, new = interval(env), interval(env)
    env.changelog(old.start, old.end)
    first_kept = min(window.from_lsn for window in env.ctx.ledger.windows.all(env.name) if _within(window, new))
    env.ledger.execute(
        "delete from penstock.window where pipeline = %s and from_lsn < %s::pg_lsn", env.name, str(first_kept)
    )

    with pytest.raises(LedgerError, match=r"interval-gone.*complete is \[") as caught:
        env.changelog(old.start, old.end)

    assert holds(env, slot, "keyed", old.start, old.end) == ["I"]
    named = datetime.fromisoformat(caught.value.message.split("complete is [")[1].split(" UTC")[0] + "+00:00")
    assert old.end - timedelta(seconds=1) <= named <= new.start + (old.end - old.start)
    env.changelog(new.start, new.end)
    assert holds(env, slot, "keyed", new.start, new.end) == ["I"]


def test_a_missing_landing_file_stops_the_interval_and_not_the_pipeline(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    one = interval(env)
    (window,) = (window for window in env.ctx.ledger.windows.all(env.name) if _within(window, one))
    place = env.landing / window.files[0].path
    place.rename(env.landing / "aside")

    with pytest.raises(LedgerError, match="interval-gone") as caught, record_errors(env.ctx):
        env.changelog(one.start, one.end)

    assert window.files[0].path in caught.value.message
    assert env.ctx.ledger.pipelines.get(env.name).state == "running"
    (env.landing / "aside").rename(place)
    env.changelog(one.start, one.end)
    assert holds(env, slot, "keyed", one.start, one.end) == ["I"]


def _within(window: Any, wanted: Interval) -> bool:
    return any(may_hold(file, wanted) for file in window.files)


# --- late -------------------------------------------------------------------------------------------


def test_a_change_whose_commit_time_was_forged_is_reported_with_the_interval_to_fill_again(
    watched: tuple[PipelineEnv, str],
) -> None:
    env, slot = watched
    filled, other = interval(env), interval(env)
    for each in (filled, other):
        env.changelog(each.start, each.end)
    forged = filled.start + (filled.end - filled.start) / 2

    by_origin(env, f"insert into keyed (id) values ({next(_keys)})", f"'{forged}'")
    flush(env)

    fills = {fill.from_time: fill.late_rows for fill in env.ctx.ledger.changelogs.fills(env.name, since=filled.start)}
    assert (fills[filled.start], fills[other.start]) == (1, 0)
    event = next(event for event in env.ctx.ledger.events.all(env.name) if event.slug == "changes-late")
    assert f"1 change said to have committed in {filled} captured after" in event.message
    env.changelog(filled.start, filled.end)
    assert holds(env, slot, "keyed", filled.start, filled.end) == ["I", "I"]
    assert logged(env, "keyed", filled.start, filled.end)[-1]["origin"] == "elsewhere"


@pytest.mark.slow
def test_a_change_that_is_captured_while_its_interval_is_filled_is_reported_too(
    watched: tuple[PipelineEnv, str],
) -> None:
    env, _ = watched
    filled = interval(env)
    forged = filled.start + (filled.end - filled.start) / 2

    def submit(job: Any) -> None:
        by_origin(env, f"insert into keyed (id) values ({next(_keys)})", f"'{forged}'")
        flush(env)
        env.submit(job)

    changelog.fill(env.ctx, filled, submit)

    (fill,) = env.ctx.ledger.changelogs.fills(env.name, since=filled.start)
    assert fill.late_rows == 1


def test_a_commit_time_beyond_the_calendar_is_reported_and_stops_nothing(watched: tuple[PipelineEnv, str]) -> None:
    env, _ = watched
    by_origin(env, f"insert into keyed (id) values ({next(_keys)})", "'infinity'")
    flush(env)
    event = next(event for event in env.ctx.ledger.events.all(env.name) if event.slug == "changes-late")
    assert "no time of the calendar" in event.message

    after = interval(env)
    assert env.changelog(after.start, after.end).rows == 1


def by_origin(env: PipelineEnv, statement: str, time: str) -> None:
    """Commit a statement as a replication origin does: with a commit time of its choice."""
    env.sql(
        "select pg_replication_origin_create('elsewhere') "
        "where not exists (select from pg_replication_origin where roname = 'elsewhere')"
    )
    with env.source.connect() as connection:
        connection.execute("select pg_replication_origin_session_setup('elsewhere')")
        with connection.transaction():
            connection.execute(statement.encode())
            connection.execute(f"select pg_replication_origin_xact_setup('0/1', {time})".encode())


def test_the_watching_slot_sees_every_change(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    env.sql("truncate keyed; insert into keyed (id) values (901), (902), (903)")
    flush(env)

    history = source_history.changes(env, slot, "keyed")

    last = max(place for place, change in enumerate(history) if change.op == "T")
    assert sum(change.op == "I" for change in history[last:]) == 3
