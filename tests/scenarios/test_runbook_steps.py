"""What the runbooks tell the person on call to do, done: afterwards source and lake are equal."""

from __future__ import annotations

import pytest

from penstock.errors import SourceError
from penstock.flow.errors import record_errors
from penstock.flow.recover.resume import resume_table
from penstock.flow.recover.teardown import teardown
from penstock.flow.verify.compare import compare
from penstock.ledger.records import TableRecord
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

TWO_TABLES = """
create table item (id int primary key, name text);
create table price (id int primary key, amount numeric(10,2));
insert into item select n, 'item ' || n from generate_series(1, 20) n;
insert into price select n, n / 3.0 from generate_series(1, 20) n;
"""
CHANGES = (
    "update item set name = 'changed' where id < 5; delete from price where id > 15; insert into item values (99, '')"
)


def table(world: PipelineEnv, name: str) -> TableRecord:
    (found,) = (record for record in world.ctx.ledger.tables.all(world.name) if record.name == name)
    return found


def resume(world: PipelineEnv, name: str) -> None:
    resume_table(world.ctx, f"public.{name}")


def follow(world: PipelineEnv) -> None:
    """Capture and merge all that was committed; the tests' servers commit asynchronously, so flush that first."""
    world.sql("set synchronous_commit = on; select pg_logical_emit_message(true, 'flush', '')")
    world.capture()
    world.merge()


def equal(world: PipelineEnv) -> bool:
    return compare(world.ctx).equal


@pytest.mark.slow
def test_everything_is_copied_anew_after_its_slot_is_gone(world16: PipelineEnv) -> None:
    world16.sql(TWO_TABLES)
    world16.bootstrap()
    slot = world16.ctx.pipeline.slot
    world16.sql(f"select pg_drop_replication_slot('{slot}')")
    world16.sql(CHANGES)
    with pytest.raises(SourceError, match="slot-missing"), record_errors(world16.ctx):
        world16.capture()
    assert world16.ctx.ledger.pipelines.get(world16.name).state == "halted"

    teardown(world16.ctx, dry_run=False)
    world16.bootstrap()

    assert equal(world16)
    world16.sql("insert into price values (500, 5)")
    follow(world16)
    assert equal(world16)


def test_a_renamed_column_goes_on_when_it_has_its_name_back(world16: PipelineEnv) -> None:
    world16.sql(TWO_TABLES)
    world16.bootstrap()
    world16.sql("alter table item rename name to title")
    world16.capture()
    assert table(world16, "item").paused_slug == "schema-change"

    world16.sql("alter table item rename title to name")
    resume(world16, "item")
    world16.sql(CHANGES)
    follow(world16)

    assert equal(world16)


def test_a_table_with_other_columns_is_made_anew_by_a_copy_when_the_old_one_is_dropped(world16: PipelineEnv) -> None:
    world16.sql(TWO_TABLES)
    world16.bootstrap()
    world16.sql("alter table price drop column amount; alter table item alter column name type bytea using name::bytea")
    world16.capture()
    assert table(world16, "item").paused_slug == table(world16, "price").paused_slug == "schema-change"

    assert world16.spark is not None
    for name in ("item", "price"):
        world16.spark.sql(f"drop table lake.{world16.name}.public.{name}")
    teardown(world16.ctx, dry_run=False)
    world16.bootstrap()

    assert equal(world16)


def test_a_foreign_commit_is_rolled_back_and_the_table_goes_on(world16: PipelineEnv) -> None:
    world16.sql(TWO_TABLES)
    world16.bootstrap()
    assert world16.spark is not None
    target = f"{world16.name}.public.item"
    world16.spark.sql(f"delete from lake.{target} where id = 7")
    world16.sql(CHANGES)
    follow(world16)
    paused = table(world16, "item")
    assert (paused.state, paused.paused_slug) == ("paused", "foreign-commit")

    world16.spark.sql(
        f"call lake.system.rollback_to_snapshot(table => '{target}', snapshot_id => {paused.snapshot_id}L)"
    )
    resume(world16, "item")
    world16.merge()

    assert equal(world16)
