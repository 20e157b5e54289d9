"""A table with nothing to merge is compared with the catalog, too: another's hand on it is seen in the next cut."""

from __future__ import annotations

import shutil

import pytest

from penstock.errors import LakeError
from penstock.flow.merge import run as merge
from penstock.flow.merge.attempt import plan_path
from penstock.flow.rebuild import run as rebuild
from penstock.jobs.merge_plan import MergePlan
from penstock_spark import table_maintenance
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import equal, flush

pytestmark = pytest.mark.spark

MOVED = ("dropped", "rolled_back", "pointed_back", "written")
TABLES = (*MOVED, "compacted", "idle", "busy")


def make(world: PipelineEnv, tables: tuple[str, ...] = TABLES) -> None:
    """Bootstrap tables, and merge one change of each."""
    for table in tables:
        world.sql(f"create table {table} (id int primary key, s text); insert into {table} values (1, 'a'), (2, 'b')")
    world.bootstrap()
    change(world, ";".join(f"insert into {table} values (3, 'c')" for table in tables))
    world.merge()


def change(world: PipelineEnv, statements: str) -> None:
    world.sql(statements)
    flush(world)
    world.capture()


def states(world: PipelineEnv) -> dict[str, tuple[str, str | None]]:
    return {table.name: (table.state, table.paused_slug) for table in world.ctx.ledger.tables.all(world.name)}


def run(world: PipelineEnv, statement: str) -> None:
    assert world.spark is not None
    world.spark.sql(statement)


def interfere(world: PipelineEnv) -> None:
    """Do to idle tables in the lake what a careless hand does."""
    assert world.lake is not None
    ours = f"lake.{world.name}.public"
    run(world, f"drop table {ours}.dropped")
    snapshots = "select snapshot_id from {}.rolled_back.snapshots order by committed_at"
    assert world.spark is not None
    first = world.spark.sql(snapshots.format(ours)).collect()[0][0]
    run(world, f"call lake.system.rollback_to_snapshot('{world.name}.public.rolled_back', {first})")
    before = world.spark.sql(
        f"select file from {ours}.pointed_back.metadata_log_entries where latest_snapshot_id <> "
        f"(select snapshot_id from {ours}.pointed_back.refs where name = 'main') order by timestamp desc limit 1"
    ).collect()[0][0]
    world.lake.database.execute(
        "update iceberg_tables set metadata_location = %s where table_namespace = %s and table_name = 'pointed_back'",
        before,
        f"{world.name}.public",
    )
    run(world, f"insert into {ours}.written values (50, 'foreign', null)")
    run(
        world,
        f"call lake.system.rewrite_data_files(table => '{world.name}.public.compacted', "
        "options => map('rewrite-all', 'true'))",
    )


def looked_at(world: PipelineEnv, attempt: str | None) -> set[str]:
    assert attempt is not None
    orders = MergePlan.loads(world.ctx.landing.read_text(plan_path(world.ctx, attempt)))
    return {table.table for table in orders.tables if table.look}


def test_an_idle_table_that_was_moved_pauses_in_the_next_cut_and_all_others_are_published(world16: PipelineEnv) -> None:
    make(world16)
    interfere(world16)
    change(world16, "insert into busy values (4, 'd')")

    attempt = world16.merge()

    foreign = dict.fromkeys(MOVED, ("paused", "foreign-commit"))
    assert states(world16) == {**foreign, **dict.fromkeys(("compacted", "idle", "busy"), ("ready", None))}
    assert looked_at(world16, attempt) == {*MOVED, "compacted"}
    ids = rebuild.resync(world16.ctx, [f"public.{table}" for table in MOVED], world16.submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)
    assert set(states(world16).values()) == {("ready", None)}
    equal(world16)
    change(world16, "insert into busy values (5, 'e')")
    assert looked_at(world16, world16.merge()) == set(), "what was looked at once is known"


@pytest.mark.slow
def test_an_idle_table_that_is_moved_before_the_publish_keeps_the_cut_back_once(world16: PipelineEnv) -> None:
    make(world16, ("idle", "busy"))
    change(world16, "insert into busy values (4, 'd')")
    attempt = merge.plan(world16.ctx)
    assert attempt is not None
    world16.submit(merge.job(world16.ctx, attempt))
    run(world16, f"drop table lake.{world16.name}.public.idle")
    before = world16.ctx.ledger.merges.last_cut(world16.name)

    with pytest.raises(LakeError, match=r"publish-conflict.*public\.idle"):
        merge.publish(world16.ctx, attempt)

    assert world16.ctx.ledger.merges.last_cut(world16.name) == before
    world16.merge()
    assert states(world16) == {"idle": ("paused", "foreign-commit"), "busy": ("ready", None)}
    assert sorted(world16.lake_rows("busy", "id")) == [(1,), (2,), (3,), (4,)]


@pytest.mark.slow
def test_a_commit_in_the_middle_of_maintenance_is_not_taken_for_ours(
    world16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(world16, ("idle", "busy"))
    expire = table_maintenance.Upkeep._expire

    def wrapped(self: table_maintenance.Upkeep) -> int:
        if self.order.target[-1] == "idle":
            run(world16, f"insert into lake.{world16.name}.public.idle values (50, 'foreign', null)")
        return expire(self)

    monkeypatch.setattr(table_maintenance.Upkeep, "_expire", wrapped)
    world16.maintain()
    change(world16, "insert into busy values (4, 'd')")

    world16.merge()

    assert states(world16) == {"idle": ("paused", "foreign-commit"), "busy": ("ready", None)}


@pytest.mark.slow
def test_our_own_maintenance_and_dead_runs_are_no_foreign_hand(world16: PipelineEnv) -> None:
    make(world16, ("idle", "busy"))
    world16.maintain()
    change(world16, "insert into busy values (4, 'd'); insert into idle values (4, 'd')")
    dead = merge.plan(world16.ctx)
    assert dead is not None
    world16.submit(merge.job(world16.ctx, dead))  # its branches stay

    world16.merge()
    world16.merge(force=True)

    assert set(states(world16).values()) == {("ready", None)}
    equal(world16)


@pytest.mark.slow
def test_a_merge_reads_nothing_of_the_runs_before(world16: PipelineEnv) -> None:
    make(world16, ("idle", "busy"))
    world16.sql("alter table idle add column more int default 7")
    change(world16, "insert into busy values (4, 'd')")
    shutil.rmtree(world16.landing / world16.name / "runs")

    world16.merge()

    assert {row[0] for row in world16.lake_rows("idle", "more")} == {7}
    shutil.rmtree(world16.landing / world16.name / "runs")
    assert world16.maintain() is not None
    shutil.rmtree(world16.landing / world16.name / "runs")
    change(world16, "delete from busy where id = 1")
    world16.merge()
    equal(world16)
