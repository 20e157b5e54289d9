"""A table that is dropped and created again under its name: another table, which waits for its copy; capture continues."""

from __future__ import annotations

from tests.pipeline_env import PipelineEnv


def test_a_table_dropped_and_created_again_waits_for_its_copy_and_capture_continues(landing_env16: PipelineEnv) -> None:
    landing_env16.begin("create table t (id int primary key); create table other (id int primary key)")

    landing_env16.sql("drop table t; create table t (id int primary key, name text)")
    landing_env16.sql(
        f"alter publication {landing_env16.ctx.pipeline.publication} add table t; insert into t values (1, 'a')"
    )
    landing_env16.sql("insert into other values (1)")
    report = landing_env16.capture()

    assert report.changes == 2
    states = {(table.name, table.state) for table in landing_env16.tables}
    assert states == {("other", "copied"), ("t", "dropped"), ("t", "new")}
    landing_env16.sql("insert into other values (2)")
    assert landing_env16.capture().changes == 1
