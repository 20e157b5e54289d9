"""The main job on real servers: bootstrap, capture, merge, and the hard cases on their way through all rooms."""

from __future__ import annotations

from tests.world import World


def test_a_database_is_copied_and_then_follows_its_source(world: World) -> None:
    world.sql("create table t (id int primary key, name text)")
    world.sql("insert into t select n, 'row ' || n from generate_series(1, 100) n")
    world.bootstrap()
    assert len(world.lake_rows("t")) == 100

    world.sql(
        "update t set name = 'changed' where id <= 10; delete from t where id > 90; insert into t values (500, 'new')"
    )
    world.capture()
    world.merge()

    rows = {row[0]: row[1] for row in world.lake_rows("t")}
    assert len(rows) == 91
    assert rows[1] == "changed"
    assert rows[500] == "new"
    assert 95 not in rows
