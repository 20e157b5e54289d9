"""What the runbooks tell the person on call to do, done: afterwards source and lake are equal."""

import pytest

from penstock.errors import SourceError
from penstock.flow.guards import record_errors
from penstock.flow.recover.resume import resume_table
from penstock.flow.recover.teardown import teardown
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


def resume(env: PipelineEnv, name: str) -> None:
    resume_table(env.ctx, f"public.{name}")


@pytest.mark.slow
def test_everything_is_copied_again_after_its_slot_is_gone(env16: PipelineEnv) -> None:
    env16.bootstrap(TWO_TABLES)
    slot = env16.ctx.pipeline.slot
    env16.sql(f"select pg_drop_replication_slot('{slot}')")
    env16.sql(CHANGES)
    with pytest.raises(SourceError, match="slot-missing"), record_errors(env16.ctx):
        env16.capture()
    assert env16.ctx.ledger.pipelines.get(env16.name).state == "halted"

    teardown(env16.ctx, dry_run=False)
    env16.bootstrap()

    assert env16.unlike() == []
    env16.sql("insert into price values (500, 5)")
    env16.follow()
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_renamed_column_continues_when_it_has_its_name_back(env16: PipelineEnv) -> None:
    env16.bootstrap(TWO_TABLES)
    env16.settings["tables"] = {"include": ["public.*"], "on_change": "pause"}
    env16.land("alter table item rename name to title")
    assert env16.table("item").paused_slug == "schema-change"

    env16.sql("alter table item rename title to name")
    resume(env16, "item")
    env16.sql(CHANGES)
    env16.follow()

    assert env16.unlike() == []


def test_a_table_with_other_columns_is_created_again_by_a_copy_when_the_old_one_is_dropped(env16: PipelineEnv) -> None:
    env16.bootstrap(TWO_TABLES)
    env16.land(
        "alter table price alter column amount type text; alter table item alter column name type bytea using name::bytea"
    )
    assert env16.table("item").paused_slug == env16.table("price").paused_slug == "schema-change"

    for name in ("item", "price"):
        env16.spark.sql(f"drop table lake.{env16.name}.public.{name}")
    teardown(env16.ctx, dry_run=False)
    env16.bootstrap()

    assert env16.unlike() == []


@pytest.mark.slow
def test_a_foreign_commit_is_rolled_back_and_the_table_continues(env16: PipelineEnv) -> None:
    env16.bootstrap(TWO_TABLES)
    target = f"{env16.name}.public.item"
    env16.spark.sql(f"delete from lake.{target} where id = 7")
    env16.sql(CHANGES)
    env16.follow()
    paused = env16.table("item")
    assert (paused.state, paused.paused_slug) == ("paused", "foreign-commit")

    env16.spark.sql(f"call lake.system.rollback_to_snapshot(table => '{target}', snapshot_id => {paused.snapshot_id}L)")
    resume(env16, "item")
    env16.merge()

    assert env16.unlike() == []
