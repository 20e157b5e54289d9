"""A lake table bears the name of its source table: after a rename, blue and green included, a person or a copy says so.

By oid a renamed table is the same, so its rows would stay under the old name. It pauses; renamed back it is resumed, and
a resync moves it to the table of its new name.
"""

from __future__ import annotations

import pytest

from penstock.errors import LakeError
from penstock.flow.rebuild import run as rebuild
from penstock.flow.recover.resume import resume_table
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, states, told

GREEN = "alter table a rename to x; alter table b rename to a; alter table x rename to b"


def test_a_renamed_table_pauses_and_is_resumed_when_it_has_its_name_again(bare16: PipelineEnv) -> None:
    begin(bare16, "create table a (id int primary key); create table b (id int primary key)")
    bare16.sql(GREEN)
    bare16.capture()
    assert states(bare16) == {"a": "paused", "b": "paused"}
    with pytest.raises(LakeError, match=r"was renamed from public\.a to public\.b"):
        resume_table(bare16.ctx, "public.a")

    bare16.sql(GREEN)
    for table in ("public.a", "public.b"):
        resume_table(bare16.ctx, table)
    bare16.capture()

    assert states(bare16) == {"a": "copied", "b": "copied"}


@pytest.mark.spark
def test_renamed_tables_that_are_resynced_one_by_one_wait_for_each_other_and_stop_no_merge(
    world16: PipelineEnv,
) -> None:
    world = world16
    for name in ("a", "b", "c", "other"):
        world.sql(f"create table {name} (id int primary key, s text); insert into {name} values (1, 'was {name}')")
    world.bootstrap()
    world.sql(
        "alter table a rename to x; alter table b rename to a; alter table c rename to b; alter table x rename to c"
    )
    world.capture()

    def resync(table: str) -> bool:
        return rebuild.switch(world.ctx, rebuild.resync(world.ctx, [table], world.submit), world.submit)

    assert not resync("public.a"), "the lake's c is still the table that is b by now"
    world.sql("insert into other values (2, 'continues')")
    world.capture()
    world.merge()
    assert world.merge() is None, "a table that waits makes no merge due"
    assert sorted(world.lake_rows("other", "id")) == [(1,), (2,)]
    assert told(world, "schema-change")[-1] == (
        "public.a was renamed to public.c, and its new table waits for that name: "
        "the lake's public.c is still another table, which has to be replaced first; resync public.c too"
    )

    assert not resync("public.b")
    assert resync("public.c")
    assert states(world) == {"a": "ready", "b": "ready", "c": "ready", "other": "ready"}
    assert [world.lake_rows(name, "s") for name in ("a", "b", "c")] == [[("was b",)], [("was c",)], [("was a",)]]


@pytest.mark.spark
@pytest.mark.slow
def test_a_table_that_is_renamed_again_while_its_copy_waits_leaves_the_name_to_another(world16: PipelineEnv) -> None:
    world = world16
    for name in ("a", "b", "other"):
        world.sql(f"create table {name} (id int primary key, s text); insert into {name} values (1, 'was {name}')")
    world.bootstrap()
    world.sql("alter table a rename to x")
    world.capture()
    rebuild.resync(world.ctx, ["public.a"], world.submit)
    world.sql("alter table x rename to y; alter table b rename to x")
    world.capture()
    rebuild.resync(world.ctx, ["public.b"], world.submit)
    world.sql("insert into other values (2, 'goes on')")
    world.capture()
    world.merge()

    assert states(world) == {"a": "paused", "other": "ready", "x": "ready"}
    assert world.lake_rows("x", "s") == [("was b",)]
    assert len(world.lake_rows("other")) == 2


@pytest.mark.spark
@pytest.mark.slow
def test_a_name_that_a_new_table_took_before_the_switch_stays_with_the_old_rows_until_both_are_copied(
    world16: PipelineEnv,
) -> None:
    world = world16
    for name in ("a", "other"):
        world.sql(f"create table {name} (id int primary key, s text); insert into {name} values (1, 'was {name}')")
    world.bootstrap()
    ids = rebuild.resync(world.ctx, ["public.a"], world.submit)
    world.sql("alter table a rename to z; create table a (id int primary key, s text); insert into a values (7, 'new')")
    world.capture()
    with pytest.raises(LakeError, match=r"rebuild-given-up.*renamed from public\.a to public\.z"):
        rebuild.switch(world.ctx, ids, world.submit)
    world.sql("insert into other values (2, 'goes on')")
    world.capture()
    world.merge()
    assert states(world) == {"a": "paused", "other": "ready"}
    assert world.lake_rows("a", "id") == [(1,)]
    assert len(world.lake_rows("other")) == 2
    assert "public.a joined" in told(world, "target-clash")[-1]

    assert rebuild.switch(world.ctx, rebuild.resync(world.ctx, ["public.a"], world.submit), world.submit)
    world.capture()
    assert states(world) == {"a": "waiting", "other": "ready", "z": "ready"}


@pytest.mark.spark
@pytest.mark.slow
def test_a_resync_moves_renamed_tables_to_their_new_names_also_where_two_have_changed_places(
    world16: PipelineEnv,
) -> None:
    world = world16
    for name in ("a", "b", "c"):
        world.sql(f"create table {name} (id int primary key, s text); insert into {name} values (1, 'was {name}')")
    world.bootstrap()
    world.sql(f"{GREEN}; alter table c rename to d; insert into d values (2, 'now d')")
    world.capture()
    world.merge()
    assert set(states(world).values()) == {"paused"}

    ids = rebuild.resync(world.ctx, None, world.submit, woken=True)
    assert rebuild.switch(world.ctx, ids, world.submit)

    assert states(world) == {"a": "ready", "b": "ready", "d": "ready"}
    assert world.lake_rows("a") == [(1, "was b", None)]
    assert world.lake_rows("b") == [(1, "was a", None)]
    assert sorted(world.lake_rows("d")) == [(1, "was c", None), (2, "now d", None)]
