"""Columns, tables, schemas, types and labels that are renamed to whatever a name may be, and back: the lake follows, or says why not."""

import itertools
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.compare.lake_reader import lake_reader
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import quoted

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAMES = (
    "line\nbreak",
    "tab\tand\rreturn",
    "\U0001f418 and \u202eback\u202c",
    'quo"te',
    "back\\slash\\n",
    "tick`s",
    '"; drop table x; --',
    "'; delete from penstock.table; --",
    "é" * 31 + "x",
    "\U0001f418" * 15 + "abc",
    " leads and trails ",
    "a.b.c",
    "%s {0} ${env:HOME} $1 :name",
    "../../etc",
    "e\u0301",
    "\u00e9",
    "null",
    "Same",
    "same",
)
"""Each is at most 63 bytes long."""
COLUMNS = (
    *NAMES,
    *("new", "old", "op", "xid", "committed_at", "commit_lsn", "_metadata", "_change_type", "_FILE"),
    *("partition", "element", "key", "value", "entries", "snapshot_id", "file_path", "penstock_partition", "ctid_"),
)
TABLES = (*NAMES, "files", "history", "snapshots", "refs", "_penstock_cuts", "t__changelog", "metadata", "branch_main")
SCHEMAS = ('s"; drop schema public; --', "pub\nlic", "\U0001f418")


@pytest.fixture(autouse=True)
def _case_sensitive(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


def begin(env: PipelineEnv, *, trigger: bool) -> None:
    env.bootstrap(trigger=trigger)
    env.capture()


@pytest.mark.parametrize("trigger", [False, True], ids=["without_the_trigger", "with_the_trigger"])
def test_columns_take_any_name_and_give_it_back_and_pass_it_on(env: PipelineEnv, trigger: bool) -> None:
    made = ", ".join(f"c{n} text" for n in range(len(COLUMNS)))
    for table in ("there", "and_back", "passed_on", "added", "still"):
        env.sql(
            f"create table {table} (id int primary key, {made}); insert into {table} (id, c0) values (1, 'x'), (2, 'y')"
        )
    begin(env, trigger=trigger)
    copied, files = env.copies(), env.data_files("still")

    rename = [f"rename c{n} to {quoted(name)}" for n, name in enumerate(COLUMNS)]
    back = [f"rename {quoted(name)} to c{n}" for n, name in enumerate(COLUMNS)]
    for table, changes in {"there": rename, "and_back": rename, "passed_on": rename, "still": rename}.items():
        for change in changes:
            env.sql(f"alter table {table} {change}")
    env.sql(
        f"update there set {quoted(COLUMNS[0])} = 'there'; update and_back set {quoted(COLUMNS[6])} = 'there' where id = 1"
    )
    env.each(back, "alter table and_back {t}")
    env.sql("update and_back set c7 = 'back' where id = 2")
    for before, after in itertools.pairwise(COLUMNS):  # each takes the name of the one after it
        env.sql(
            f"alter table passed_on drop column {quoted(after)}; alter table passed_on rename {quoted(before)} to {quoted(after)}"
        )
        env.sql(f"update passed_on set {quoted(after)} = 'passed on' where id = 1")
    for n, name in enumerate(COLUMNS):
        env.sql(f"alter table added drop c{n}; alter table added add column {quoted(name)} text default 'given'")
    env.follow(f"insert into added (id, {quoted(COLUMNS[2])}) values (3, 'z')")

    assert set(env.paused()) <= ({"passed_on", "added"} if not trigger else set())
    unequal = {found.name.rpartition(".")[2]: found.lines() for found in compare(env.ctx).tables if not found.equal}
    assert unequal.keys() <= env.paused().keys(), unequal
    assert env.data_files("still") == files, "names alone write no file"
    assert env.copies() == copied


@pytest.mark.parametrize("trigger", [False, True], ids=["without_the_trigger", "with_the_trigger"])
def test_tables_schemas_types_and_labels_take_any_name(env: PipelineEnv, trigger: bool) -> None:
    env.settings["tables"] = {"include": ["*.*"]}
    env.each(
        range(len(TABLES)),
        "create table t{t} (id int primary key, a text); insert into t{t} values (1, 'a{t}'), (2, 'b')",
    )
    env.each(
        range(len(SCHEMAS)),
        "create schema s{t}; create table s{t}.t (id int primary key); insert into s{t}.t values ({t})",
    )
    env.sql(
        "create schema kinds; create type kinds.mood as enum ('sad', 'ok'); create table moods (id int primary key, m kinds.mood, n kinds.mood[])"
    )
    env.sql("insert into moods values (1, 'sad', '{ok}'), (2, 'ok', '{sad,ok}')")
    begin(env, trigger=trigger)
    copied = env.copies()

    for n, name in enumerate(TABLES):
        env.sql(f"update t{n} set a = 'before' where id = 1; alter table t{n} rename to {quoted(name)}")
        env.sql(f"update {quoted(name)} set a = a || '!' where id = 2")
    for n, name in enumerate(SCHEMAS):
        env.sql(f"alter schema s{n} rename to {quoted(name)}; insert into {quoted(name)}.t values (77)")
    for n, name in enumerate(NAMES):
        label = f"'{n} {name[:12].replace(chr(39), chr(39) * 2)}'"
        env.sql(f"alter type kinds.mood rename to {quoted(name)}; alter type kinds.{quoted(name)} add value {label}")
        env.sql(
            f"alter type kinds.{quoted(name)} rename to mood; insert into moods values ({n + 10}, {label}, array['ok', {label}]::kinds.mood[])"
        )
    env.follow()

    assert env.paused() == {}
    assert env.unlike() == []
    assert env.copies() == copied
    assert {record.name for record in env.tables} == {*TABLES, "t", "moods"}

    for n, name in enumerate(TABLES):
        env.sql(f"alter table {quoted(name)} rename to t{n}; delete from t{n} where id = 1")
    for n, name in enumerate(SCHEMAS):
        env.sql(f"alter schema {quoted(name)} rename to s{n}; insert into s{n}.t values (78)")
    env.follow()
    assert env.wrong() == []
    with lake_reader(env.ctx.pipeline.lake.catalog, env.ctx.catalog) as lake:
        assert all(lake.table((env.name, "public", f"t{n}")) for n in range(len(TABLES)))
