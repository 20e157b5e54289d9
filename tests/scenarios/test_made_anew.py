"""A table that is dropped and created again under its name: another table, which waits for its copy; capture continues."""

from __future__ import annotations

from penstock.flow.copy import bootstrap
from tests.faults.killed import copy_without_spark
from tests.pipeline_env import PipelineEnv


def test_a_table_dropped_and_made_anew_waits_for_its_copy_and_capture_goes_on(bare16: PipelineEnv) -> None:
    world = bare16
    world.sql("create table t (id int primary key); create table other (id int primary key)")
    bootstrap.prepare(world.ctx)
    bootstrap.copy(world.ctx, copy_without_spark)

    world.sql("drop table t; create table t (id int primary key, name text)")
    world.sql(f"alter publication {world.ctx.pipeline.publication} add table t; insert into t values (1, 'a')")
    world.sql("insert into other values (1)")
    report = world.capture()

    assert report.changes == 2
    states = {(table.name, table.state) for table in world.ctx.ledger.tables.all(world.name)}
    assert states == {("other", "copied"), ("t", "dropped"), ("t", "new")}
    world.sql("insert into other values (2)")
    assert world.capture().changes == 1
