"""Changes of a table's columns: the lake follows by metadata, with rows written before, within and after the change's transaction."""

import pytest

from penstock.flow.load import waiting
from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import begin, happen
from tests.scenarios.test_stories import COLUMNS, COLUMNS_MADE


def test_a_change_of_columns_alone_writes_no_data_file_and_is_an_event(env16: PipelineEnv) -> None:
    cases = {name: story for name, story in COLUMNS.items() if name != "rest"}
    begin(env16, cases, trigger=False)
    files = {name: env16.data_files(name) for name in cases}

    for name, story in cases.items():
        happen(env16, name, [step for step in story.steps if step.startswith("alter")])
    env16.follow()

    assert env16.wrong() == []
    assert {name: env16.data_files(name) for name in cases} == files
    assert env16.merge() is None, "nothing is left to do"
    reported = env16.ctx.ledger.events.unannounced(env16.name, "schema-followed")
    assert {each.table_name for each in reported} == {f"public.{name}" for name in cases}
    assert [each.message for each in reported if each.table_name == "public.renamed"] == ["column a was renamed to c"]
    assert all(
        each.details["xid"] for each in reported if each.details["rule"] not in ("drop-column", "replica-identity")
    )


def test_a_dropped_column_stays_with_what_it_held_or_goes(env16: PipelineEnv) -> None:
    env16.each(("kept", "gone"), COLUMNS_MADE)
    env16.bootstrap()
    for name, policy in (("kept", "keep"), ("gone", "drop")):
        env16.settings["lake"] = {"on_dropped_column": policy}
        env16.follow(f"alter table {name} drop column a; update {name} set n = 0 where id = 1")

    assert sorted(env16.lake_rows("kept", "id, a"))[:2] == [(1, None), (2, "a2")]
    assert "a" not in env16.spark.table(f"lake.{env16.name}.public.gone").columns
    assert env16.unlike() == []

    env16.settings["lake"] = {"on_dropped_column": "keep"}
    env16.follow("alter table kept add column a date default '2026-01-01'")
    rows = env16.lake_rows("kept", "id, a__dropped_2, cast(a as string)")
    assert sorted(rows)[:2] == [(1, None, "2026-01-01"), (2, "a2", "2026-01-01")]
    assert env16.unlike() == []


def test_a_renamed_column_with_exact_texts_aside_is_copied_again(env16: PipelineEnv) -> None:
    env16.bootstrap(
        "create table t (id int primary key, at date); insert into t values (1, 'infinity'), (2, '2026-01-01')"
    )

    env16.follow("alter table t rename column at to day")

    (table,) = env16.tables
    assert (table.state, table.paused_slug) == ("paused", "schema-change")
    assert "no exact texts of at in _misfits" in (table.paused_reason or "")


def test_a_column_dropped_and_added_again_with_rows_between_is_not_guessed(env16: PipelineEnv) -> None:
    env16.bootstrap("create table t (id int primary key, a text); insert into t values (1, 'x')")

    env16.follow("alter table t drop column a; alter table t add column a text; update t set a = 'new' where id = 1")

    (table,) = env16.tables
    assert (table.state, table.paused_slug) == ("paused", "schema-change")
    assert "in more than one way" in (table.paused_reason or "")


@pytest.mark.slow
def test_a_table_without_a_key_is_copied_again_only_where_its_dropped_column_is_kept(env16: PipelineEnv) -> None:
    made = "create table {t} (a text, b text); alter table {t} replica identity full; insert into {t} values ('x', 'y'), ('x', 'z')"
    env16.each(("kept", "gone"), made)
    env16.bootstrap()

    env16.sql(
        "begin; delete from gone where b = 'y'; alter table gone drop column b; insert into gone values ('v'); commit"
    )
    env16.settings["lake"] = {"on_dropped_column": "drop"}
    env16.follow()
    assert env16.wrong() == []

    env16.settings["lake"] = {"on_dropped_column": "keep"}
    env16.land("alter table kept drop column b")
    assert "without a key" in env16.paused()["kept"]


@pytest.mark.slow
def test_a_truncate_beside_a_rename_is_followed_and_one_with_it_is_copied_again(env16: PipelineEnv) -> None:
    env16.each(("beside", "within"), COLUMNS_MADE)
    env16.bootstrap()

    for statement in (
        "truncate beside",
        "insert into beside (id, a) values (1, 'x')",
        "alter table beside rename a to c",
    ):
        env16.sql(statement)
    env16.sql("begin; truncate within; alter table within rename a to c; commit")
    env16.follow("update beside set n = 1")

    assert set(env16.paused()) == {"within"}
    assert sorted(env16.lake_rows("beside", "id, c")) == [(1, "x")]


def test_a_table_may_have_another_policy_than_the_others(env16: PipelineEnv) -> None:
    env16.each(("followed", "copied", "waiting"), COLUMNS_MADE)
    env16.settings["tables"] = {
        "include": ["public.*"],
        "policies": [
            {"include": ["public.waiting"], "on_change": "pause"},
            {"include": ["public.*"], "exclude": ["public.followed"], "on_change": "resync"},
        ],
    }
    env16.bootstrap()

    env16.each(("followed", "copied", "waiting"), "alter table {t} rename a to c")
    env16.capture()

    assert sorted(env16.paused()) == ["copied", "waiting"]
    assert waiting.tables_to_announce(env16.ctx) == ["public.copied"]
    assert [table.name for table in waiting.due(env16.ctx, env16.tables)] == ["copied"]


# A column added at the source: the lake follows at the next merge, whether or not a row has changed since.


def test_an_added_column_appears_with_its_default_before_any_row_changes(env16: PipelineEnv) -> None:
    env16.sql("create table t (id int primary key); insert into t values (1), (2)")
    env16.bootstrap("create table quiet (id int primary key); insert into quiet values (1)")

    env16.land("alter table t add column state text default 'new', add column note text")
    assert env16.merge() is not None
    assert sorted(env16.lake_rows("t", "id, state, note")) == [(1, "new", None), (2, "new", None)]

    assert env16.merge() is None, "nothing is left to do"
    env16.follow("update t set state = 'old' where id = 1; insert into t values (3, 'made', 'x')")
    assert sorted(env16.lake_rows("t", "id, state, note")) == [(1, "old", None), (2, "new", None), (3, "made", "x")]


# A table that is dropped and created again under its name: another table, which waits for its copy; capture continues.


def test_a_table_dropped_and_created_again_waits_for_its_copy_and_capture_continues(env16: PipelineEnv) -> None:
    env16.begin("create table t (id int primary key); create table other (id int primary key)")

    env16.sql("drop table t; create table t (id int primary key, name text)")
    env16.sql(f"alter publication {env16.ctx.pipeline.publication} add table t; insert into t values (1, 'a')")
    env16.sql("insert into other values (1)")
    report = env16.capture()

    assert report.changes == 2
    states = {(table.name, table.state) for table in env16.tables}
    assert states == {("other", "copied"), ("t", "dropped"), ("t", "new")}
    env16.sql("insert into other values (2)")
    assert env16.capture().changes == 1
