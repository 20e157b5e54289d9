"""Changes of tables' shapes that meet each other and the rows of their time: the lake is equal, and no table stays behind."""

import pytest

from tests.pipeline_env import PipelineEnv

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def catch_up(env: PipelineEnv) -> dict[str, str]:
    """Let captures, merges and resyncs run until nothing is left; return the state of each table."""
    for _ in range(4):
        env.follow()
        env.resync()
    env.follow()
    return {table.name: table.state for table in env.tables}


def test_values_that_a_command_changed_before_a_vacuum_full_are_read_again(env16: PipelineEnv) -> None:
    env16.bootstrap("create table t (id int primary key, v text); insert into t values (1, 'a'), (2, 'b')")
    env16.capture()
    env16.settings["capture"] = {"max_wal_bytes": "256KiB"}
    env16.sql("alter table t alter v type text using upper(v)")
    env16.sql("grant select on t to public")
    env16.sql("select pg_logical_emit_message(false, 'filler', repeat('x', 1000000))")
    for statement in ("vacuum full t", "insert into t values (3, 'c')", "update t set v = 'z' where id = 2"):
        env16.sql(statement)
    env16.capture()
    env16.sql("vacuum full t")

    assert catch_up(env16) == {"t": "ready"}
    assert env16.unlike() == []


def test_a_key_is_widened_narrowed_and_widened_again_with_keys_of_both_widths(env16: PipelineEnv) -> None:
    env16.sql("create table t (id int primary key, v int, big text); alter table t alter big set storage external")
    env16.bootstrap("insert into t select g, g, repeat('x', 5000) from generate_series(1, 50) g", trigger=True)
    env16.capture()
    env16.land(
        "update t set v = 1 where id = 1; alter table t alter id type bigint;"
        "update t set id = 5000000000 where id = 2; update t set v = 9 where id = 3"
    )
    env16.sql("delete from t where id = 5000000000; alter table t alter id type int; insert into t values (77, 7, 'y')")
    env16.sql("alter table t alter id type bigint; insert into t values (6000000000, 7, 'y')")
    env16.sql("begin; alter table t alter v type bigint using v + 1; alter table t alter v type bigint; commit")

    assert catch_up(env16) == {"t": "ready"}
    assert env16.unlike() == []


def test_rows_of_an_attached_partition_move_and_it_goes_and_comes_while_they_wait(env16: PipelineEnv) -> None:
    env16.sql("create table r (id int primary key, n int) partition by range (id)")
    env16.sql("create table r0 partition of r for values from (0) to (100)")
    env16.sql("create table r1 partition of r for values from (100) to (200)")
    env16.bootstrap("insert into r select g, g from generate_series(0, 199) g")
    env16.capture()
    env16.sql("create table r2 (like r including all); insert into r2 select g, -g from generate_series(200, 249) g")
    env16.sql("alter table r attach partition r2 for values from (200) to (300)")
    env16.land("delete from r where id = 5; update r set id = 5 where id = 245; update r set id = 260 where id = 7")
    env16.sql("alter table r detach partition r2; insert into r2 values (270, 1); delete from r2 where id = 201")
    env16.sql("alter table r attach partition r2 for values from (200) to (300)")
    env16.sql("update r set n = 1000 where id in (5, 260, 270); truncate r1; alter table r detach partition r0")
    env16.sql("alter table r attach partition r0 for values from (0) to (100)")

    assert catch_up(env16) == {"r": "ready"}
    assert env16.unlike() == []
