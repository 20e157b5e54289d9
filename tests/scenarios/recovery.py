"""What the scenarios of recovery share: a shop, its changes, and a look at what the lake shows meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.flow.copy import bootstrap
from penstock.flow.recover import run as recover
from penstock.flow.recover.run import Outlook
from penstock.flow.spark_job import SparkJob
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv

SHOP = """
create table item (id int primary key, name text, price numeric(10,2));
create table visit (page text, n int);
alter table visit replica identity full;
create table "Order Line" (id int primary key, note text);
insert into item select n, 'item ' || n, n / 3.0 from generate_series(1, 30) n;
insert into visit select 'page ' || n % 3, n % 4 from generate_series(1, 20) n;
insert into "Order Line" select n, 'line ' || n from generate_series(1, 10) n;
"""
LANDED = "update item set name = 'landed' where id = 1; delete from item where id = 2; insert into item values (100, 'landed', 1)"
LOST = """
update item set name = 'never captured' where id = 3;
delete from item where id in (4, 5, 6);
delete from visit where page = 'page 1';
insert into "Order Line" values (500, 'never captured');
"""
AFTER = """
update item set name = name || '+' where id > 20;
delete from visit where n = 2;
insert into item (id, name) select max(id) + 1, '' from item;
"""


def flush(world: PipelineEnv) -> None:
    """Bring every commit into the WAL: the tests' servers commit asynchronously."""
    world.sql("set synchronous_commit = on; select pg_logical_emit_message(true, 'flush', '')")


def consume(world: PipelineEnv) -> None:
    """Read changes from the slot as somebody else would, so that they are gone."""
    flush(world)
    name = world.ctx.pipeline
    world.sql(
        f"select count(*) from pg_logical_slot_get_binary_changes('{name.slot}', null, null, "
        f"'proto_version', '1', 'publication_names', '{name.publication}')"
    )


def recovered(world: PipelineEnv, meanwhile: Callable[[], None] = lambda: None) -> Outlook:
    """Do what the DAG does after a dry run; `meanwhile` happens while the tables are copied."""

    def submit(job: SparkJob) -> None:
        world.submit(job)
        meanwhile()

    outlook = recover.look(world.ctx)
    recover.begin(world.ctx, outlook)
    world.merge(last=True)
    recover.new_era(world.ctx)
    bootstrap.copy(world.ctx, submit)
    world.merge()
    return outlook


def shown(world: PipelineEnv) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a reader of the lake sees under the tables' names."""
    return {table: sorted(world.lake_rows(table)) for table in ("item", "visit", "Order Line")}


def equal(world: PipelineEnv) -> None:
    """Assert that source and lake are equal."""
    found = compare(world.ctx)
    assert found.equal, [line for table in found.tables for line in table.lines()]


def follows(world: PipelineEnv) -> None:
    """Assert that the pipeline follows its source."""
    world.sql(AFTER)
    flush(world)
    world.capture()
    world.merge()
    equal(world)


def traces(world: PipelineEnv) -> dict[str, Any]:
    """Return all that a recovery could change: slots, publications, ledger, landing zone and catalog."""
    pointers = "select table_namespace, table_name, metadata_location from iceberg_tables order by 1, 2"
    ctx = world.ctx
    return {
        "slots": world.sql("select slot_name, confirmed_flush_lsn::text from pg_replication_slots order by 1"),
        "publications": world.sql("select oid, pubname from pg_publication"),
        "pipeline": ctx.ledger.pipelines.get(world.name),
        "tables": ctx.ledger.tables.all(world.name),
        "events": ctx.ledger.events.all(world.name),
        "landing": ctx.landing.list(world.name),
        "catalog": world.lake.database.execute(pointers) if world.lake else None,
    }
