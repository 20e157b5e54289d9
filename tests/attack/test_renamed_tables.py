"""Renames that are not followed, because the table is being copied or the pipeline says so: a person or a copy settles them.

By oid a renamed table is the same, so its rows would stay under the old name. It pauses; renamed back it is resumed, and
a resync moves it to the table of its new name.
"""

import pytest

from penstock.errors import LakeError
from penstock.flow.load import run as rebuild
from penstock.flow.merge.run import merge
from penstock.flow.recover.resume import resume_table
from penstock.flow.spark_job import SparkJob
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, messages, states

GREEN = "alter table a rename to x; alter table b rename to a; alter table x rename to b"


def test_a_renamed_table_pauses_and_is_resumed_when_it_has_its_name_again(env16: PipelineEnv) -> None:
    env16.settings["tables"] = {"include": ["public.*"], "on_change": "pause"}
    begin(env16, "create table a (id int primary key); create table b (id int primary key)")
    env16.land(GREEN)
    assert states(env16) == {"a": "paused", "b": "paused"}
    with pytest.raises(LakeError, match=r"was renamed from public\.a to public\.b"):
        resume_table(env16.ctx, "public.a")

    env16.sql(GREEN)
    for table in ("public.a", "public.b"):
        resume_table(env16.ctx, table)
    env16.capture()

    assert states(env16) == {"a": "copied", "b": "copied"}


NOT_SHOWN_YET = (
    "create table named (id int primary key); insert into named values (1); create table other (id int primary key)"
)


@pytest.mark.spark
def test_a_table_that_is_renamed_before_its_first_cut_is_shown_by_its_new_name_without_another_copy(
    env16: PipelineEnv,
) -> None:
    begin(env16, NOT_SHOWN_YET)
    copied = env16.copies()
    env16.land("alter table named rename to renamed")
    env16.land("insert into renamed values (2); alter table other rename to named; insert into named values (3)")

    env16.merge()

    assert catalog_names(env16) == {"renamed", "named"}
    assert env16.wrong(copied) == []


@pytest.mark.spark
@pytest.mark.slow
def test_a_table_that_is_renamed_while_its_first_cut_is_made_takes_its_new_name_in_the_next(env16: PipelineEnv) -> None:
    begin(env16, NOT_SHOWN_YET)
    copied = env16.copies()

    def submit(job: SparkJob) -> None:
        env16.land("alter table named rename to renamed; insert into renamed values (2)")
        env16.submit(job)

    merge(env16.ctx, submit)
    assert catalog_names(env16) == {"named", "other"}

    env16.merge()

    assert catalog_names(env16) == {"renamed", "other"}
    assert env16.wrong(copied) == []


@pytest.mark.spark
@pytest.mark.slow
def test_a_table_that_is_copied_again_under_another_name_before_its_first_cut_holds_up_no_other(
    env16: PipelineEnv,
) -> None:
    env16.settings["tables"] = {"include": ["public.*"], "on_change": "resync"}
    begin(env16, NOT_SHOWN_YET)
    env16.follow("alter table named rename to renamed; insert into renamed values (2); insert into other values (2)")
    assert states(env16) == {"named": "paused", "other": "ready"}

    assert env16.wake()

    assert catalog_names(env16) == {"renamed", "other"}
    assert env16.wrong() == []


@pytest.mark.slow
@pytest.mark.spark
def test_renamed_tables_that_are_resynced_one_by_one_wait_for_each_other_and_stop_no_merge(env16: PipelineEnv) -> None:
    env16.settings["tables"] = {"include": ["public.*"], "on_change": "resync"}
    env16.each(
        ("a", "b", "c", "other"), "create table {t} (id int primary key, s text); insert into {t} values (1, 'was {t}')"
    )
    env16.bootstrap()
    env16.land(
        "alter table a rename to x; alter table b rename to a; alter table c rename to b; alter table x rename to c"
    )

    def resync(table: str) -> bool:
        return env16.resync(table)

    assert not resync("public.a"), "the lake's c is still the table that is b by now"
    env16.follow("insert into other values (2, 'continues')")
    assert env16.merge() is None, "a table that waits makes no merge due"
    assert sorted(env16.lake_rows("other", "id")) == [(1,), (2,)]
    assert messages(env16, "schema-change")[-1] == (
        f"public.a is to be {env16.name}.public.c in the lake, and waits for that name: the table of public.c has it still; "
        "resync public.c too"
    )

    assert not resync("public.b")
    assert resync("public.c")
    assert states(env16) == {"a": "ready", "b": "ready", "c": "ready", "other": "ready"}
    assert [env16.lake_rows(name, "s") for name in ("a", "b", "c")] == [[("was b",)], [("was c",)], [("was a",)]]


@pytest.mark.spark
@pytest.mark.slow
def test_a_table_that_is_renamed_again_while_its_copy_waits_leaves_the_name_to_another(env16: PipelineEnv) -> None:
    env16.settings["tables"] = {"include": ["public.*"], "on_change": "resync"}
    env16.each(
        ("a", "b", "other"), "create table {t} (id int primary key, s text); insert into {t} values (1, 'was {t}')"
    )
    env16.bootstrap()
    env16.land("alter table a rename to x")
    rebuild.resync(env16.ctx, ["public.a"], env16.submit)
    env16.land("alter table x rename to y; alter table b rename to x")
    rebuild.resync(env16.ctx, ["public.b"], env16.submit)
    env16.follow("insert into other values (2, 'goes on')")

    assert states(env16) == {"a": "paused", "other": "ready", "x": "ready"}
    assert env16.lake_rows("x", "s") == [("was b",)]
    assert len(env16.lake_rows("other")) == 2


@pytest.mark.spark
@pytest.mark.slow
def test_a_name_that_a_new_table_took_before_the_switch_stays_with_the_old_rows_until_both_are_copied(
    env16: PipelineEnv,
) -> None:
    env16.settings["tables"] = {"include": ["public.*"], "on_change": "resync"}
    env16.each(("a", "other"), "create table {t} (id int primary key, s text); insert into {t} values (1, 'was {t}')")
    env16.bootstrap()
    ids = rebuild.resync(env16.ctx, ["public.a"], env16.submit)
    env16.land(
        "alter table a rename to z; create table a (id int primary key, s text); insert into a values (7, 'new')"
    )
    with pytest.raises(LakeError, match=r"rebuild-given-up.*renamed from public\.a to public\.z"):
        rebuild.switch(env16.ctx, ids, env16.submit)
    env16.follow("insert into other values (2, 'goes on')")
    assert states(env16) == {"a": "paused", "other": "ready"}
    assert env16.lake_rows("a", "id") == [(1,)]
    assert len(env16.lake_rows("other")) == 2
    assert "public.a joined" in messages(env16, "target-clash")[-1]

    assert env16.resync("public.a")
    env16.capture()
    assert states(env16) == {"a": "waiting", "other": "ready", "z": "ready"}


@pytest.mark.spark
@pytest.mark.slow
def test_a_resync_moves_renamed_tables_to_their_new_names_also_where_two_have_changed_places(
    env16: PipelineEnv,
) -> None:
    env16.settings["tables"] = {"include": ["public.*"], "on_change": "resync"}
    env16.each(("a", "b", "c"), "create table {t} (id int primary key, s text); insert into {t} values (1, 'was {t}')")
    env16.bootstrap()
    env16.follow(f"{GREEN}; alter table c rename to d; insert into d values (2, 'now d')")
    assert set(states(env16).values()) == {"paused"}

    assert env16.wake()

    assert states(env16) == {"a": "ready", "b": "ready", "d": "ready"}
    assert env16.lake_rows("a") == [(1, "was b", None)]
    assert env16.lake_rows("b") == [(1, "was a", None)]
    assert sorted(env16.lake_rows("d")) == [(1, "was c", None), (2, "now d", None)]
    assert "c" not in catalog_names(env16), "the table that c was is put aside"


def catalog_names(env: PipelineEnv) -> set[str]:
    assert env.lake is not None
    where = f"where table_namespace = '{env.name}.public'"
    return {name for (name,) in env.lake.database.execute(f"select table_name from iceberg_tables {where}")}
