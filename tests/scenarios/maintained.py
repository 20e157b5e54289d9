"""The shop whose lake tables are maintained, and a look at them as PyIceberg sees them."""

from pathlib import Path
from typing import Any

from penstock.compare.lake_reader import lake_reader
from tests.pipeline_env import PipelineEnv

SHOP = """
create table item (id int primary key, name text, price numeric(10,2));
create table visit (page text, n int);
alter table visit replica identity full;
create table still (id int primary key, note text);
create table taken (id int primary key, note text);
insert into item select n, 'item ' || n, n / 3.0 from generate_series(1, 200) n;
insert into visit select 'page ' || n % 3, n % 4 from generate_series(1, 40) n;
insert into still select n, 'still ' || n from generate_series(1, 50) n;
insert into taken select n, 'taken ' || n from generate_series(1, 20) n;
"""
CHANGES = """
update item set name = name || '+' where id % 7 = 1;
delete from item where id = (select min(id) from item);
insert into item select max(id) + 1, 'new' from item;
insert into visit values ('page 1', 1);
delete from visit where ctid = (select ctid from visit limit 1);
"""


def iceberg(env: PipelineEnv, table: str) -> Any:
    """Return a lake table as PyIceberg sees it."""
    with lake_reader("lake", env.ctx.catalog) as reader:
        found = reader.table((env.name, "public", table))
        assert found is not None
        return found.table


def snapshots(env: PipelineEnv, table: str) -> set[int]:
    return {snapshot.snapshot_id for snapshot in iceberg(env, table).snapshots()}


def folder(env: PipelineEnv, table: str) -> Path:
    return Path(iceberg(env, table).location().removeprefix("file:"))
