"""What the scenarios of recovery share: a shop, its changes, and a look at what the lake shows meanwhile."""

from collections.abc import Callable
from typing import Any

from penstock.flow.recover import run as recover
from penstock.flow.recover.run import Outlook
from penstock.flow.sequences import RECOVERY, carry_out
from penstock.flow.spark_job import SparkJob
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
CHANGES = """
update item set name = name || '+' where id % 4 = {0} % 4;
delete from item where id = (select max(id) from item);
insert into item select coalesce(max(id), 0) + 100, 'new', {0} from item;
delete from visit where ctid = (select ctid from visit limit 1);
insert into visit values ('page', {0}), ('page', {0});
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


def consume(env: PipelineEnv) -> None:
    """Read changes from the slot as another session would, so that they are gone."""
    env.flush()
    name = env.ctx.pipeline
    env.sql(
        f"select count(*) from pg_logical_slot_get_binary_changes('{name.slot}', null, null, "
        f"'proto_version', '1', 'publication_names', '{name.publication}')"
    )


def recovered(env: PipelineEnv, meanwhile: Callable[[], None] = lambda: None, *, merge_first: bool = True) -> Outlook:
    """Do what the DAG does after a dry run; `meanwhile` happens while the tables are copied."""

    def submit(job: SparkJob) -> None:
        env.submit(job)
        if job.application.stem == "copy_tables":
            meanwhile()

    outlook = recover.assess(env.ctx)
    recover.begin(env.ctx, outlook)
    carry_out(env.ctx, RECOVERY, submit, merge_first=merge_first)
    return outlook


def shown(env: PipelineEnv) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a reader of the lake sees under the tables' names."""
    return {table: sorted(env.lake_rows(table)) for table in ("item", "visit", "Order Line")}


def follows(env: PipelineEnv) -> None:
    """Assert that the pipeline follows its source."""
    env.follow(AFTER)
    assert env.unlike() == []


def traces(env: PipelineEnv) -> dict[str, Any]:
    """Return all that a recovery could change: slots, publications, ledger, landing zone and catalog."""
    pointers = "select table_namespace, table_name, metadata_location from iceberg_tables order by 1, 2"
    ctx = env.ctx
    return {
        "slots": env.sql("select slot_name, confirmed_flush_lsn::text from pg_replication_slots order by 1"),
        "publications": env.sql("select oid, pubname from pg_publication"),
        "pipeline": ctx.ledger.pipelines.get(env.name),
        "tables": ctx.ledger.tables.all(env.name),
        "events": ctx.ledger.events.all(env.name),
        "landing": ctx.landing.list(env.name),
        "catalog": env.lake.database.execute(pointers) if env.lake else None,
    }
