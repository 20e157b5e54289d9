"""A `real` that became `double precision` without a copy: what was landed of it is rounded to a `real` first, wherever it is read."""

import pytest

from penstock.flow.load import run as rebuild
from penstock.flow.load.run import Replay
from tests.pipeline_env import PipelineEnv

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MADE = """
create table t (id int primary key, f real default 0.1, day date, note text);
insert into t select i, i / 7.0, case when i = 3 then 'infinity'::date else '2026-01-01'::date + i end from generate_series(1, 20) i
"""
WIDENED = "alter table t alter column f type double precision"
ROWS = "update t set f = 0.7 where id = {0}; insert into t (id) values ({0} + 100); delete from t where id = {0} + 1"


def begun(env: PipelineEnv) -> set[tuple[str, int]]:
    env.bootstrap(MADE, trigger=True)
    env.follow()
    return env.copies()


def captured(env: PipelineEnv, *statements: str) -> None:
    for statement in statements:
        env.sql(statement)
    env.land()


def test_a_copy_that_was_landed_as_texts_is_replayed_over_it(env16: PipelineEnv) -> None:
    begun(env16)
    captured(env16, ROWS.format(1), WIDENED, ROWS.format(5))
    env16.merge()

    ids = rebuild.replay(env16.ctx, Replay(("public.t",)), env16.submit)
    captured(env16, ROWS.format(9))

    assert rebuild.switch(env16.ctx, ids, env16.submit)
    assert env16.unlike() == []


def test_values_that_were_fetched_before_it_are_merged_in_one_batch_with_it(env16: PipelineEnv) -> None:
    copied = begun(env16)
    captured(env16, "update t set f = 0.3 where id = 7", "alter table t alter column f type real using f + 0.1")
    assert [table.remedy == "read" for table in env16.tables] == [True]
    rebuild.resync(env16.ctx, None, env16.submit, woken=True)
    captured(env16, ROWS.format(1), WIDENED, ROWS.format(5))

    env16.merge()

    assert env16.wrong(copied) == []


def test_a_column_that_is_widened_before_the_lake_has_it_shows_the_widened_default(env16: PipelineEnv) -> None:
    copied = begun(env16)
    captured(env16, ROWS.format(1), "alter table t add column g real default 0.7")
    captured(env16, ROWS.format(3), "alter table t alter column g type float8", ROWS.format(5))

    env16.merge()

    assert env16.wrong(copied) == []


def test_a_key_of_it_is_copied(env16: PipelineEnv) -> None:
    env16.sql("create table k (f real primary key); insert into k values (0.1)")
    begun(env16)
    captured(env16, "alter table k alter column f type double precision")

    states = {table.name: (table.state, table.remedy == "read") for table in env16.tables}

    assert states == {"t": ("ready", False), "k": ("paused", False)}


def test_a_changelog_has_the_widened_values(env16: PipelineEnv) -> None:
    env16.settings["changelog"] = {"slack": 0}
    begun(env16)
    ((start,),) = env16.sql("select clock_timestamp()")
    captured(env16, "update t set f = 0.3 where id = 7", WIDENED, "update t set f = 0.3 where id = 8")
    ((end,),) = env16.sql("select clock_timestamp()")
    env16.land()
    env16.changelog(start, end)

    rows = env16.spark.sql(
        f"select new.f, new_misfits from lake.{env16.name}.public.t__changelog where op = 'U' order by new.id"
    )

    ((widened,),) = env16.sql("select 0.3::real::float8")
    assert [tuple(row) for row in rows.collect()] == [(widened, None), (0.3, None)]
