"""Changelogs of tables whose shape changes: each is what the source did, under the names of that time; a second slot says what that was."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.source import ddl_trigger
from tests.pipeline_env import PipelineEnv
from tests.scenarios import source_history
from tests.scenarios.changelogs import flush, logged, now
from tests.scenarios.source_history import Change, Image

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MADE = """
create table {t} (id int primary key, a text, n int, big text, code text not null unique);
alter table {t} alter big set storage external;
insert into {t} select i, 'a' || i, i, repeat(i::text, 3000), 'c' || i from generate_series(1, 12) i
"""
PARTED = """
create table {t} (id int primary key, a text) partition by range (id);
create table {t}_1 partition of {t} for values from (0) to (100);
create table {t}_2 partition of {t} for values from (100) to (200);
insert into {t} select i, 'a' || i from generate_series(1, 199, 6) i;
create table {t}_3 (like {t} including all); insert into {t}_3 select i, 'filled' from generate_series(200, 210) i
"""
BY_CODE = "alter table {t} drop constraint {t}_pkey, add primary key (code)"


@dataclass(frozen=True)
class Story:
    """What happens to a table until it is looked at, and after that."""

    first: tuple[str, ...]
    later: tuple[str, ...] = ("update {t} set a = 'later' where id = 5",)
    made: str = MADE


STORIES = {
    "fetched": Story(
        (
            "update {t} set a = 'x' where id = 1; delete from {t} where id = 2",
            "begin; update {t} set a = 'y' where id = 3; alter table {t} add u uuid default gen_random_uuid(), add s serial; "
            "update {t} set a = 'z' where id = 3; insert into {t} (id, code) values (20, 'c20'); commit",
            "update {t} set id = 21 where id = 20; alter table {t} alter n type text using 'n' || n; update {t} set n = 'new' where id = 4",
        ),
        ("update {t} set s = s + 1 where id in (1, 3); delete from {t} where id = 21",),
    ),
    "keys": Story(
        (
            "update {t} set id = 100 where id = 1; delete from {t} where id = 2",
            f"begin; update {{t}} set n = 0 where id = 3; {BY_CODE}; update {{t}} set code = 'moved' where id = 3; "
            "delete from {t} where code = 'c4'; update {t} set id = 50 where code = 'c5'; commit",
            "alter table {t} drop constraint {t}_pkey, drop constraint {t}_code_key, replica identity full; "
            "insert into {t} select 7, 'eq', 7, 'b', 'c7' from generate_series(1, 2); delete from {t} where a = 'eq'",
        ),
        (
            "alter table {t} add primary key (id), replica identity default; update {t} set id = 60 where id = 6",
            "alter table {t} drop constraint {t}_pkey; insert into {t} (id, code) values (70, 'c70')",
        ),
    ),
    "parted": Story(
        (
            "update {t} set a = 'x' where id = 1; alter table {t} attach partition {t}_3 for values from (200) to (300)",
            "update {t} set a = 'here' where id = 205; update {t} set id = 220 where id = 7; truncate {t}_1",
            "begin; update {t} set a = 'last' where id = 103; delete from {t} where id = 109; drop table {t}_2; "
            "insert into {t} values (250, 'new'); commit",
        ),
        (
            "alter table {t} detach partition {t}_3; update {t}_3 set a = 'alone'; insert into {t} values (5, 'first')",
            "alter table {t} attach partition {t}_3 for values from (200) to (300); delete from {t} where id = 205",
        ),
        PARTED,
    ),
    "swapped": Story(
        (
            "update {t} set a = 'as a' where id = 1",
            "begin; update {t} set a = 'still a' where id = 2; alter table {t} rename a to x; alter table {t} rename code to a; "
            "alter table {t} rename x to code; update {t} set code = 'is code now' where id = 2; commit",
            'alter table {t} rename n to "N"; alter table {t} rename big to n; update {t} set n = \'was big\', "N" = 1 where id = 3',
        ),
        ("update {t} set n = 'later' where id = 5",),
    ),
    "truncated": Story(
        (
            "begin; update {t} set a = 'before' where id = 1; truncate {t}; alter table {t} add d date default '2026-01-01'; "
            "insert into {t} (id, code) values (1, 'one'); truncate {t}; alter table {t} rename a to b; "
            "insert into {t} (id, code, b) values (2, 'two', 'b'); alter table {t} drop n; update {t} set b = 'c'; commit",
            "begin; alter table {t} alter d type timestamp; truncate {t}; insert into {t} (id, code) values (3, 'three'); commit",
        ),
        (
            "begin; truncate {t}; alter table {t} add n bigint; insert into {t} (id, code, n) values (5, '5', 5000000000); commit",
        ),
    ),
    "untouched": Story(
        (
            "update {t} set n = 0 where id = 1; alter table {t} rename big to large; update {t} set n = 0 where id = 2",
            "alter table {t} add more text default 'more'; update {t} set n = 1 where id in (1, 2)",
            "alter table {t} drop a; update {t} set id = 30 where id = 3; alter table {t} replica identity full",
            "update {t} set n = 3 where id = 4; delete from {t} where id = 5",
        ),
        ("update {t} set n = 4 where id = 6; alter table {t} drop large; update {t} set n = 5 where id = 6",),
    ),
    "again": Story(
        (
            "update {t} set a = 'old' where id = 1; alter table {t} drop a; update {t} set n = 2 where id = 2",
            "alter table {t} add a int default 7; update {t} set a = 8 where id = 3; insert into {t} (id, code) values (20, 'c20')",
            "alter table {t} drop a; alter table {t} add a text; update {t} set a = 'third' where id = 4",
        ),
    ),
    "wider": Story(
        (
            "update {t} set n = 1 where id = 1; alter table {t} alter n type bigint, alter id type bigint",
            "update {t} set n = 5000000000 where id = 2; update {t} set id = 6000000000 where id = 3; delete from {t} where id = 4",
        ),
    ),
    "blue": Story(
        (
            "update {t} set a = 'blue' where id = 1",
            "begin; alter table blue rename to x; alter table green rename to blue; alter table x rename to green; commit",
            "update green set a = 'was blue' where id = 2; delete from green where id = 3",
        ),
        ("update green set a = 'still' where id = 4",),
    ),
    "green": Story(("update blue set a = 'was green' where id = 1",), ("delete from blue where id = 9",)),
}


@pytest.mark.parametrize("trigger", [False, True], ids=["without_the_trigger", "with_the_trigger"])
def test_a_changelog_is_what_the_source_did_to_a_table_of_changing_shape(env: PipelineEnv, trigger: bool) -> None:
    env.settings["source"] = {**env.settings["source"], "ddl_trigger": trigger}
    env.settings["changelog"] = {"slack": 0}
    env.settings["lake"] = {"on_dropped_partition": "follow"}
    for name, story in STORIES.items():
        env.sql(story.made.format(t=name))
    if trigger:
        env.sql(ddl_trigger.install_statement())
    env.settings["tables"] = {"include": [f"public.{name}" for name in STORIES]}
    env.bootstrap()
    env.capture()
    slot = f"watch_{env.source.name}"
    source_history.watch(env, slot)
    oids = {table.name: table.oid for table in env.tables}

    start = now(env)
    for name, story in STORIES.items():
        tell(env, name, story.first)
    catch_up(env)
    middle = now(env)
    flush(env)
    env.changelog(start, middle)
    for name, story in STORIES.items():
        tell(env, name, story.later)
    catch_up(env)
    end = now(env)
    flush(env)
    env.changelog(middle, end)
    env.changelog(start, middle)  # again, with the names of later

    history = source_history.changes(env, slot)
    env.spark.conf.set("spark.sql.caseSensitive", "true")  # two columns differ by case only
    names = {table.oid: table.name for table in env.tables}
    for name, oid in oids.items():
        found = [shown(row) for row in logged(env, names[oid], start, end)]
        wanted = [done(change) for change in history if change.oid == oid]
        assert found == wanted, name
        assert {change[1] for change in wanted} >= {"U"}, name
    assert {table.name: table.paused_reason for table in env.tables if table.state != "ready"} == {}
    assert env.unlike() == []


@pytest.fixture(autouse=True)
def _as_it_was(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset("spark.sql.caseSensitive")


def tell(env: PipelineEnv, name: str, statements: tuple[str, ...]) -> None:
    for statement in statements:
        env.sql(statement.format(t=name))


def catch_up(env: PipelineEnv) -> None:
    """Let captures, merges and resyncs run until nothing is left."""
    for _ in range(3):
        flush(env)
        env.merge()
        env.wake()
    flush(env)
    env.merge()


def done(change: Change) -> tuple[Any, ...]:
    """Return a change of the source: its place, what it was, both images without NULLs, and what was not sent."""
    return (
        (change.commit_lsn, change.xid),
        change.op,
        given(change.new),
        given(change.old),
        change.old_kind,
        sorted(change.unknown or ()),
    )


def given(image: Image) -> dict[str, str] | None:
    return None if image is None else {name: text for name, text in image.items() if text is not None}


def shown(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a changelog's row in the same form; a value that has no place in its field stands aside."""
    images = [
        None if row[each] is None else {**texts(row[each]), **(row[f"{each}_misfits"] or {})} for each in ("new", "old")
    ]
    return (row["commit_lsn"], row["xid"]), row["op"], *images, row["old_kind"], sorted(row["unknown"] or ())


def texts(image: dict[str, Any]) -> dict[str, str]:
    return {name: text(value) for name, value in image.items() if value is not None}


def text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)
