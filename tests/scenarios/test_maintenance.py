"""Maintenance on real servers: what a table shows stays, how it is stored changes."""

from __future__ import annotations

from penstock.flow.compare import compare
from tests.world import World

SHOP = """
create table item (id int primary key, name text, price numeric(10,2));
create table visit (page text, n int);
alter table visit replica identity full;
insert into item select n, 'item ' || n, n / 3.0 from generate_series(1, 200) n;
insert into visit select 'page ' || n % 3, n % 4 from generate_series(1, 40) n;
"""


def flush(world: World) -> None:
    """Bring every commit into the WAL: the tests' servers commit asynchronously."""
    world.sql("set synchronous_commit = on; select pg_logical_emit_message(true, 'flush', '')")


def busy(world: World, rounds: int) -> None:
    """Change the tables, capture and merge, several times."""
    for _ in range(rounds):
        world.sql(
            "update item set name = name || '+' where id % 7 = 1; delete from item where id = (select min(id) from item);"
            "insert into item select max(id) + 1, 'new' from item; insert into visit values ('page 1', 1);"
            "delete from visit where ctid = (select ctid from visit limit 1)"
        )
        flush(world)
        world.capture()
        world.merge()


def test_after_maintenance_source_and_lake_are_equal_and_the_tables_are_compact(world16: World) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    busy(world16, 6)

    report = world16.maintain()

    assert report is not None
    assert report.lake is not None
    tables = {table.target[-1]: table for table in report.lake.tables}
    item = tables["item"]
    assert item.before is not None
    assert item.after is not None
    assert (item.before.delete_files > 0, item.after.delete_files, item.after.files) == (True, 0, 1)
    assert tables["_penstock_cuts"].left is None
    assert compare(world16.ctx).equal
    busy(world16, 2)
    assert compare(world16.ctx).equal
    assert {table.state for table in world16.ctx.ledger.tables(world16.name)} == {"ready"}
