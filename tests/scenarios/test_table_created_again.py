"""A table that is dropped and created again under its name: another table, which waits for its copy; capture continues."""

from __future__ import annotations

from tests.pipeline_env import PipelineEnv


def test_a_table_dropped_and_created_again_waits_for_its_copy_and_capture_continues(landing_env16: PipelineEnv) -> None:
    env = landing_env16
    env.begin("create table t (id int primary key); create table other (id int primary key)")

    env.sql("drop table t; create table t (id int primary key, name text)")
    env.sql(f"alter publication {env.ctx.pipeline.publication} add table t; insert into t values (1, 'a')")
    env.sql("insert into other values (1)")
    report = env.capture()

    assert report.changes == 2
    states = {(table.name, table.state) for table in env.ctx.ledger.tables.all(env.name)}
    assert states == {("other", "copied"), ("t", "dropped"), ("t", "new")}
    env.sql("insert into other values (2)")
    assert env.capture().changes == 1
