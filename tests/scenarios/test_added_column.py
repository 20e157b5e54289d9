"""A column added at the source: the lake follows at the next merge, whether or not a row has changed since."""

from __future__ import annotations

from tests.pipeline_env import PipelineEnv


def test_an_added_column_appears_with_its_default_before_any_row_changes(world16: PipelineEnv) -> None:
    world16.sql("create table t (id int primary key); insert into t values (1), (2)")
    world16.sql("create table quiet (id int primary key); insert into quiet values (1)")
    world16.bootstrap()

    world16.sql("alter table t add column state text default 'new', add column note text")
    world16.capture()
    assert world16.merge() is not None
    assert sorted(world16.lake_rows("t", "id, state, note")) == [(1, "new", None), (2, "new", None)]

    assert world16.merge() is None, "nothing is left to do"
    world16.sql("update t set state = 'old' where id = 1; insert into t values (3, 'made', 'x')")
    world16.capture()
    world16.merge()
    assert sorted(world16.lake_rows("t", "id, state, note")) == [(1, "old", None), (2, "new", None), (3, "made", "x")]
