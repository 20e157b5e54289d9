"""What a hostile or hasty source does to a table's columns, and what reads the landed files of every version later."""

from dataclasses import dataclass

import pytest

from penstock.flow.load import run as rebuild
from penstock.flow.load.run import Replay
from penstock.flow.merge import publish as publishing
from penstock.flow.merge import run as merge
from tests.dying import dying
from tests.pipeline_env import PipelineEnv
from tests.scenarios import changelogs
from tests.scenarios.stories import quoted

pytestmark = pytest.mark.spark

HOSTILE = ("a.b", 'say "x"', "it's", "back`tick", "Order", "select", "größe", "x" * 63, "a b", "penstock_partition")
WIDE = 900


@pytest.mark.slow
def test_columns_are_renamed_to_names_of_every_kind(env16: PipelineEnv) -> None:
    columns = ", ".join(f"c{n} text" for n in range(len(HOSTILE)))
    env16.sql(f"create table named (id int primary key, {columns}, low text)")
    env16.sql(f"create table wide (id int primary key, {', '.join(f'c{n} int' for n in range(WIDE))})")
    env16.sql("create table reserved (id int primary key, v text); insert into reserved values (1, 'x')")
    env16.bootstrap(
        "insert into named (id, c0, low) values (1, 'first', 'low'), (2, 'second', 'low'); insert into wide (id) values (1)"
    )

    env16.sql("update named set c1 = 'before'")
    for n, name in enumerate(HOSTILE):
        env16.sql(f"alter table named rename c{n} to {quoted(name)}")
    env16.sql("update named set \"a.b\" = 'after' where id = 1")
    env16.sql('alter table named rename low to "ORDER"')  # as another one but for its case
    env16.sql(
        "; ".join(f"alter table wide rename c{n} to d{n}" for n in range(0, WIDE, 7)) + "; update wide set d7 = 1"
    )
    env16.follow("alter table reserved rename v to _misfits")

    assert list(env16.paused()) == ["reserved"]
    assert "a column _misfits now" in env16.paused()["reserved"]
    env16.sql("alter table reserved rename _misfits to v")
    assert env16.unlike() == []


def test_a_partitioned_and_sorted_lake_table_follows_a_rename_of_its_columns(env16: PipelineEnv) -> None:
    env16.bootstrap(
        "create table t (id int primary key, day date, v text); insert into t select n, date '2026-01-01' + n, n from generate_series(1, 9) n"
    )
    table = f"lake.{env16.name}.public.t"
    for layout in ("add partition field days(day)", "write ordered by v desc"):
        env16.spark.sql(f"alter table {table} {layout}")

    env16.sql("update t set v = 'before' where id < 4; alter table t rename day to born; alter table t rename v to w")
    env16.follow("update t set born = born + 1, w = 'after' where id in (3, 5); delete from t where id = 7")

    assert env16.wrong() == []


@pytest.mark.slow
def test_tables_in_many_files_and_of_every_layout_follow_a_wider_column_and_are_replayed(env16: PipelineEnv) -> None:
    """The transforms of a partition, a sort order, and old files' bounds are of the narrower type."""
    layouts = {
        "bucketed": "add partition field bucket(4, id)",
        "truncated": "add partition field truncate(10, id)",
        "by_value": "add partition field n",
        "sorted": "write ordered by n desc",
        "filed": "set tblproperties ('write.metadata.metrics.default' = 'full')",
    }
    for name in layouts:
        env16.sql(f"create table {name} (id int primary key, n int, l int[])")
        env16.sql(f"insert into {name} select i, i % 5, array[i] from generate_series(1, 30) i")
    env16.bootstrap(trigger=True)
    for name, layout in layouts.items():
        env16.spark.sql(f"alter table lake.{env16.name}.public.{name} {layout}")

    def both(statement: str) -> None:
        env16.each(layouts, statement)
        env16.follow()

    for n in range(3):
        both(f"update {{t}} set n = {n} where id % 6 in ({n}, {n + 3})")
    for name in layouts:
        env16.sql(f"update {name} set n = 7 where id = 4")
        env16.sql(f"alter table {name} alter id type bigint, alter n type bigint, alter l type bigint[]")
    both(
        "update {t} set n = 3000000000 where id = 5; update {t} set id = 4000000000 where id = 6; delete from {t} where id = 7"
    )
    both("update {t} set n = 3 where id in (1, 4000000000); update {t} set l = '{{5000000000}}' where id = 20")

    assert env16.wrong() == []
    rebuild.replay(env16.ctx, Replay(("public.bucketed", "public.filed")), env16.submit)
    env16.merge()
    assert env16.unlike() == []


@dataclass(frozen=True)
class History:
    """A table {t} that is made and changed window by window; what happens to it while it is rebuilt; and the events of its changes."""

    made: str
    windows: tuple[tuple[str, ...], ...]
    later: str
    reports: tuple[str, ...] = ()


KEYED = (
    "create table {t} (id int primary key, code text not null unique, note text); "
    "insert into {t} select i, 'c' || i, 'n' || i from generate_series(1, 9) i"
)
SHIFT, DROP, ADD = (
    "update {t} set id = id + 1",
    "alter table {t} drop constraint {t}_pkey",
    "add constraint {t}_pkey primary key",
)
OF_TWO_KEYS = (
    "update {t} set note = 'by id' where id in (1, 2); delete from {t} where id = 3",
    f"{DROP}, {ADD} (code)",
    "update {t} set note = 'by code' where code in ('c2', 'c4'); delete from {t} where code = 'c5'; "
    "update {t} set code = 'moved' where code = 'c6'",
)
HISTORIES = {
    "columns": History(
        "create table {t} (id int primary key, a text, b text); insert into {t} values (1, 'a', 'b'), (2, 'c', 'd')",
        (
            ("update {t} set a = 'one' where id = 1",),
            ("alter table {t} rename a to x; alter table {t} rename b to a; insert into {t} values (3, 'x', 'a')",),
            ("alter table {t} drop column x; update {t} set a = 'three' where id = 3",),
            ("alter table {t} add column x int default 5; update {t} set x = 6 where id = 2",),
        ),
        "update {t} set x = 7 where id = 1",
    ),
    "keys": History(
        KEYED,
        (
            *((step,) for step in OF_TWO_KEYS),
            (
                "alter table {t} drop constraint {t}_pkey, drop constraint {t}_code_key, replica identity full; "
                "insert into {t} select 7, 'c7', 'equal' from generate_series(1, 2)",
            ),
            ("delete from {t} where note = 'equal'; update {t} set note = 'whole' where id = 8",),
            (
                f"alter table {{t}} {ADD} (id), replica identity default; "
                "update {t} set note = 'by id again' where id in (1, 8)",
            ),
        ),
        "update {t} set note = 'later' where id in (2, 9)",
    ),
    # whole rows tell which are meant as long as two of them may have one key; the server keeps them apart before and after
    "a key that becomes deferrable and back": History(
        f"{KEYED}; alter table {{t}} replica identity full",
        (
            (
                f"update {{t}} set note = 'x' where id < 4; {DROP}, {ADD} (id) deferrable",
                SHIFT,
                "delete from {t} where id = 4",
            ),
            (
                SHIFT,
                "begin; set constraints all deferred; insert into {t} values (5, 'second', null); "
                "delete from {t} where id = 5 and code <> 'second'; commit",
                "update {t} set id = 15 - id where id in (7, 8)",
            ),
            (
                SHIFT,
                f"{DROP}, {ADD} (id)",
                "update {t} set note = 'y' where id > 6; update {t} set id = 100 where id = 7",
            ),
        ),
        "delete from {t} where id = 6",
        (
            "the key is the whole row now, because the primary key is deferrable, it was (id)",
            "the key is (id) now, it was the whole row",
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_replay_and_a_resync_read_windows_of_every_version(env16: PipelineEnv, history: History) -> None:
    names = ("replayed", "resynced")
    env16.each(names, history.made)
    env16.bootstrap()
    for window in history.windows:
        for name in names:
            for statement in window:
                env16.sql(statement.format(t=name))
        env16.land()
    env16.merge()
    assert env16.wrong() == []
    reported = [each.message for each in env16.ctx.ledger.events.unannounced(env16.name, "schema-followed")]
    assert [reported.count(report) for report in history.reports] == [len(names) for _ in history.reports]

    ids = [
        *rebuild.replay(env16.ctx, Replay(("public.replayed",)), env16.submit),
        *rebuild.resync(env16.ctx, ["public.resynced"], env16.submit),
    ]
    env16.each(names, history.later)
    env16.land()
    rebuild.switch(env16.ctx, ids, env16.submit)
    env16.merge()

    assert env16.wrong() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "change"),
    [
        (
            "create table t (id int primary key, a text); insert into t values (1, 'x')",
            "alter table t rename a to b; update t set b = 'y'",
        ),
        (KEYED.format(t="t"), f"begin; {'; '.join(OF_TWO_KEYS)}; commit".format(t="t")),
    ],
    ids=["of columns", "of two keys"],
)
def test_a_merge_that_dies_after_spark_or_in_the_publish_leaves_the_table_as_it_was_and_is_made_again(
    env16: PipelineEnv, made: str, change: str
) -> None:
    env16.bootstrap(made)
    before = sorted(env16.lake_rows("t"))
    env16.land(change)

    for owner, step in ((merge, "publish"), (publishing, "_published")):
        with dying(owner, step):
            env16.merge()
        assert sorted(env16.lake_rows("t")) == before

    env16.merge()
    assert env16.wrong() == []


@pytest.mark.slow
def test_maintenance_between_two_changes_of_columns_loses_nothing(env16: PipelineEnv) -> None:
    env16.bootstrap(
        "create table t (id int primary key, a text, b int); insert into t select n, n, n from generate_series(1, 50) n"
    )
    for n in range(4):
        env16.sql(
            f"update t set b = {n} where id % 3 = {n % 3}; alter table t rename a to a{n}; alter table t rename a{n} to a"
        )
        env16.follow(
            f"alter table t rename b to c; update t set c = c + 1 where id < {n * 10}; alter table t rename c to b"
        )
        env16.maintain()

    env16.follow("alter table t drop column b")
    env16.maintain()
    env16.follow("update t set a = 'last' where id = 9")

    assert env16.unlike() == []
    assert {row[0]: row[1] for row in env16.lake_rows("t", "id, b")}[9] is None


@pytest.mark.slow
def test_a_changelog_names_each_change_by_the_columns_of_its_time(env16: PipelineEnv) -> None:
    env16.settings["changelog"] = {"tables": {"include": ["public.t"]}, "slack": 0}
    env16.bootstrap("create table t (id int primary key, a text); insert into t values (1, 'x')")
    start = changelogs.now(env16)
    env16.sql("update t set a = 'old name'")
    env16.sql("alter table t rename a to b; update t set b = 'new name'")
    changelogs.flush(env16)
    end = changelogs.now(env16)
    changelogs.flush(env16)
    env16.merge()

    env16.changelog(start, end)

    rows = env16.lake_rows("t__changelog", "op, new.a, new.b")
    assert set(rows) == {("U", None, "new name"), ("U", "old name", None)}
