"""Tables join and leave under load, and the lake shows it: equal at the end, by the comparison that shares nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.flow.rebuild import run as rebuild
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import members, states
from tests.scenarios.recovery import flush

pytestmark = pytest.mark.spark

TABLE = (
    "create table {0} (id int primary key, note text); insert into {0} select n, 'old' from generate_series(1, 50) n;"
)
CHANGES = """
insert into {0} select coalesce(max(id), 0) + 1, 'new' from {0};
update {0} set note = note || '+' where id % 5 = 1;
delete from {0} where id = (select min(id) from {0} where id % 3 = 0);
update {0} set id = -id where id = (select min(id) from {0} where id > 0);
"""


@contextmanager
def under_load(world: PipelineEnv, *tables: str) -> Iterator[None]:
    """Let somebody write to these tables, in transactions of several statements, until the block ends."""
    stop, wrong = threading.Event(), list[BaseException]()

    def write() -> None:
        try:
            with world.source.connect() as conn:
                while not stop.wait(0.05):
                    for table in tables:
                        conn.execute(f"begin; {CHANGES.format(table)} commit".encode())
        except BaseException as error:  # told by the test
            wrong.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()
    assert not wrong, wrong


def copy_new(world: PipelineEnv) -> None:
    """Do what the DAG does that capture wakes."""
    ids = rebuild.resync(world.ctx, None, world.submit)
    assert rebuild.switch(world.ctx, ids, world.submit)


def catch_up(world: PipelineEnv) -> None:
    flush(world)
    world.capture()
    world.merge()


def equal(world: PipelineEnv) -> None:
    found = compare(world.ctx)
    assert found.equal, [line for table in found.tables for line in table.lines()]


def test_a_table_that_matches_and_one_of_a_new_pattern_join_under_load(world: PipelineEnv) -> None:
    world.settings["tables"] = {"include": ["public.t*"]}
    world.sql(TABLE.format("t") + TABLE.format("u"))
    world.bootstrap()

    with world.source.connect() as early, under_load(world, "t", "u"):
        world.sql(TABLE.format("t2"))
        early.execute("begin; insert into t2 values (1000, 'before it joined'); insert into u values (1000, 'so, too')")
        world.settings["tables"] = {"include": ["public.t*", "public.u"]}
        world.capture()
        assert states(world) == {"t": "ready", "t2": "waiting", "u": "waiting"}
        threading.Timer(2, lambda: early.execute("update t2 set note = 'late' where id = 1000; commit")).start()
        copy_new(world)
        assert states(world) == dict.fromkeys(("t", "t2", "u"), "ready")
    catch_up(world)

    equal(world)
    assert ("late",) in world.lake_rows("t2", "note")
    assert ("so, too",) in world.lake_rows("u", "note")


@pytest.mark.slow
def test_a_table_added_by_the_owners_own_statement_joins_under_load(world16: PipelineEnv) -> None:
    world = world16
    name = world.ctx.pipeline.publication
    world.settings["source"] = {**world.settings["source"], "adopt": True}
    world.sql(TABLE.format("t") + TABLE.format("u") + f"create publication {name} for table only t")
    world.bootstrap()

    with under_load(world, "t", "u"):
        world.sql(f"alter publication {name} add table only u")
        world.capture()
        copy_new(world)
    catch_up(world)

    assert states(world) == {"t": "ready", "u": "ready"}
    equal(world)


@pytest.mark.slow
def test_a_table_that_left_is_complete_through_the_position_told_and_is_copied_anew_when_it_comes_back(
    world16: PipelineEnv,
) -> None:
    world = world16
    world.sql(TABLE.format("t") + TABLE.format("u"))
    world.bootstrap()
    world.sql(CHANGES.format("u"))
    flush(world)
    world.capture()
    told = sorted(world.sql("select * from u"))

    world.settings["tables"] = {"include": ["public.*"], "exclude": ["public.u"]}
    world.sql(CHANGES.format("u"))
    flush(world)
    world.capture()
    assert states(world) == {"t": "ready", "u": "ready"}, "what is landed through there is still to be merged"
    world.merge()
    (left,) = (table for table in world.ctx.ledger.tables.all(world.name) if table.name == "u")
    assert (left.state, left.complete_through) == ("dropped", left.left_lsn)
    assert sorted(world.lake_rows("u", "id, note")) == told
    world.sql(CHANGES.format("u"))
    catch_up(world)
    assert sorted(world.lake_rows("u", "id, note")) == told, "it stays as it was"

    world.settings["tables"] = {"include": ["public.*"]}
    world.capture()
    assert sorted(world.lake_rows("u", "id, note")) == told, "until it is copied"
    copy_new(world)
    catch_up(world)
    assert states(world) == {"t": "ready", "u": "ready"}
    equal(world)


@pytest.mark.slow
def test_a_table_made_anew_under_its_name_takes_the_place_of_the_old_one_when_it_is_copied(
    world16: PipelineEnv,
) -> None:
    world = world16
    world.sql(TABLE.format("t") + TABLE.format("u"))
    world.bootstrap()
    old = sorted(world.lake_rows("u", "id, note"))

    world.sql("drop table u; create table u (key text primary key, n numeric); insert into u values ('a', 1.5)")
    world.sql("insert into t values (1000, 'new')")
    catch_up(world)
    assert sorted(world.lake_rows("u", "id, note")) == old
    copy_new(world)
    world.sql("insert into u values ('b', 2)")
    catch_up(world)

    assert sorted(world.lake_rows("u", "key")) == [("a",), ("b",)]
    equal(world)
    kept = "select table_namespace from iceberg_tables where table_name = 'u' and table_namespace like %s"
    assert len(world.lake.database.execute(kept, f"{world.name}._penstock_old_%")) == 1


@pytest.mark.slow
def test_where_the_policy_says_so_maintenance_drops_the_lake_table_of_a_table_that_left(world16: PipelineEnv) -> None:
    world = world16
    world.sql(TABLE.format("t") + TABLE.format("u") + TABLE.format("w"))
    world.bootstrap()
    world.settings["tables"] = {"include": ["public.t", "public.w"], "on_removed": "drop"}
    world.sql("drop table w")
    catch_up(world)
    world.settings["tables"] = {"include": ["public.t"], "on_removed": "drop"}
    catch_up(world)
    assert states(world) == {"t": "ready", "u": "dropped", "w": "dropped"}
    assert {table.name for table in world.ctx.ledger.membership.to_discard(world.name)} == {"u", "w"}

    world.maintain()
    assert len(world.lake_rows("u")) == 50, "it rests before it goes"
    world.settings["tables"] = {"include": ["public.t", "public.u"], "on_removed": "drop"}
    world.capture()
    assert {table.name for table in world.ctx.ledger.membership.to_discard(world.name)} == {"w"}, "u has come back"

    world.ledger.execute("update penstock.old_table set seen_at = seen_at - interval '30 days'")
    world.maintain()
    names = "select table_name from iceberg_tables where table_namespace = %s order by 1"
    assert world.lake.database.execute(names, f"{world.name}.public") == [("t",), ("u",)]
    assert world.ctx.ledger.membership.to_discard(world.name) == []
    copy_new(world)
    catch_up(world)
    equal(world)
    assert members(world) == {"t", "u"}
