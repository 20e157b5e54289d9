"""A column added at the source: the lake follows at the next merge, whether or not a row has changed since."""

from __future__ import annotations

from tests.pipeline_env import PipelineEnv


def test_an_added_column_appears_with_its_default_before_any_row_changes(env16: PipelineEnv) -> None:
    env16.sql("create table t (id int primary key); insert into t values (1), (2)")
    env16.bootstrap("create table quiet (id int primary key); insert into quiet values (1)")

    env16.land("alter table t add column state text default 'new', add column note text")
    assert env16.merge() is not None
    assert sorted(env16.lake_rows("t", "id, state, note")) == [(1, "new", None), (2, "new", None)]

    assert env16.merge() is None, "nothing is left to do"
    env16.follow("update t set state = 'old' where id = 1; insert into t values (3, 'made', 'x')")
    assert sorted(env16.lake_rows("t", "id, state, note")) == [(1, "old", None), (2, "new", None), (3, "made", "x")]
