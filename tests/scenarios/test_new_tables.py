"""Tables join and leave under load, and the lake shows it: equal at the end, by the comparison that shares nothing."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import members, states
from tests.waiting import at_work

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


def under_load(env: PipelineEnv, *tables: str) -> AbstractContextManager[None]:
    """Let another session write to these tables, in transactions of several statements, until the block ends."""

    def write(stopped: Callable[[float], bool]) -> None:
        with env.source.connect() as conn:
            while not stopped(0.05):
                for table in tables:
                    conn.execute(f"begin; {CHANGES.format(table)} commit".encode())

    return at_work(write)


def test_a_table_that_matches_and_one_of_a_new_pattern_join_under_load(env: PipelineEnv) -> None:
    env.settings["tables"] = {"include": ["public.t*"]}
    env.bootstrap(TABLE.format("t") + TABLE.format("u"))

    with env.source.connect() as early, under_load(env, "t", "u"):
        env.sql(TABLE.format("t2"))
        early.execute("begin; insert into t2 values (1000, 'before it joined'); insert into u values (1000, 'so, too')")
        env.settings["tables"] = {"include": ["public.t*", "public.u"]}
        env.capture()
        assert states(env) == {"t": "ready", "t2": "waiting", "u": "waiting"}
        threading.Timer(2, lambda: early.execute("update t2 set note = 'late' where id = 1000; commit")).start()
        assert env.resync()
        assert states(env) == dict.fromkeys(("t", "t2", "u"), "ready")
    env.follow()

    assert env.unlike() == []
    assert ("late",) in env.lake_rows("t2", "note")
    assert ("so, too",) in env.lake_rows("u", "note")


@pytest.mark.slow
def test_a_table_added_by_the_owners_own_statement_joins_under_load(env16: PipelineEnv) -> None:
    name = env16.ctx.pipeline.publication
    env16.settings["source"] = {**env16.settings["source"], "adopt": True}
    env16.bootstrap(TABLE.format("t") + TABLE.format("u") + f"create publication {name} for table only t")

    with under_load(env16, "t", "u"):
        env16.land(f"alter publication {name} add table only u")
        assert env16.resync()
    env16.follow()

    assert states(env16) == {"t": "ready", "u": "ready"}
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_table_that_left_is_complete_through_the_reported_position_and_is_copied_again_when_it_comes_back(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(TABLE.format("t") + TABLE.format("u"))
    env16.land(CHANGES.format("u"))
    reported = sorted(env16.sql("select * from u"))

    env16.settings["tables"] = {"include": ["public.*"], "exclude": ["public.u"]}
    env16.land(CHANGES.format("u"))
    assert states(env16) == {"t": "ready", "u": "ready"}, "what is landed through there is still to be merged"
    env16.merge()
    left = env16.table("u")
    assert (left.state, left.complete_through) == ("dropped", left.left_lsn)
    assert sorted(env16.lake_rows("u", "id, note")) == reported
    env16.follow(CHANGES.format("u"))
    assert sorted(env16.lake_rows("u", "id, note")) == reported, "it stays as it was"

    env16.settings["tables"] = {"include": ["public.*"]}
    env16.capture()
    assert sorted(env16.lake_rows("u", "id, note")) == reported, "until it is copied"
    assert env16.resync()
    env16.follow()
    assert states(env16) == {"t": "ready", "u": "ready"}
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_table_created_again_under_its_name_takes_the_place_of_the_old_one_when_it_is_copied(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(TABLE.format("t") + TABLE.format("u"))
    old = sorted(env16.lake_rows("u", "id, note"))

    env16.sql("drop table u; create table u (key text primary key, n numeric); insert into u values ('a', 1.5)")
    env16.follow("insert into t values (1000, 'new')")
    assert sorted(env16.lake_rows("u", "id, note")) == old
    assert env16.resync()
    env16.follow("insert into u values ('b', 2)")

    assert sorted(env16.lake_rows("u", "key")) == [("a",), ("b",)]
    assert env16.unlike() == []
    kept = "select table_namespace from iceberg_tables where table_name = 'u' and table_namespace like %s"
    assert len(env16.lake.database.execute(kept, f"{env16.name}._penstock_old_%")) == 1


@pytest.mark.slow
def test_where_the_policy_says_so_maintenance_drops_the_lake_table_of_a_table_that_left(env16: PipelineEnv) -> None:
    env16.bootstrap(TABLE.format("t") + TABLE.format("u") + TABLE.format("w"))
    env16.settings["tables"] = {"include": ["public.t", "public.w"], "on_removed": "drop"}
    env16.follow("drop table w")
    env16.settings["tables"] = {"include": ["public.t"], "on_removed": "drop"}
    env16.follow()
    assert states(env16) == {"t": "ready", "u": "dropped", "w": "dropped"}
    assert {table.name for table in env16.ctx.ledger.membership.to_discard(env16.name)} == {"u", "w"}

    env16.maintain()
    assert len(env16.lake_rows("u")) == 50, "it rests before it goes"
    env16.settings["tables"] = {"include": ["public.t", "public.u"], "on_removed": "drop"}
    env16.capture()
    assert {table.name for table in env16.ctx.ledger.membership.to_discard(env16.name)} == {"w"}, "u has come back"

    env16.ledger.execute("update penstock.old_table set seen_at = seen_at - interval '30 days'")
    env16.maintain()
    names = "select table_name from iceberg_tables where table_namespace = %s order by 1"
    assert env16.lake.database.execute(names, f"{env16.name}.public") == [("t",), ("u",)]
    assert env16.ctx.ledger.membership.to_discard(env16.name) == []
    assert env16.resync()
    env16.follow()
    assert env16.unlike() == []
    assert members(env16) == {"t", "u"}
