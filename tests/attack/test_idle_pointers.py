"""A table with nothing to merge is compared with the catalog, too: another's hand on it is seen in the next cut."""

import shutil

import pytest

from penstock.errors import LakeError
from penstock.flow.merge import run as merge
from penstock.jobs.plans import MergePlan
from penstock.landing import layout
from penstock_spark import table_maintenance
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

MOVED = ("dropped", "rolled_back", "pointed_back", "written")
TABLES = (*MOVED, "compacted", "idle", "busy")


def make(env: PipelineEnv, tables: tuple[str, ...] = TABLES) -> None:
    """Bootstrap tables, and merge one change of each."""
    env.each(tables, "create table {t} (id int primary key, s text); insert into {t} values (1, 'a'), (2, 'b')")
    env.bootstrap()
    change(env, ";".join(f"insert into {table} values (3, 'c')" for table in tables))
    env.merge()


def change(env: PipelineEnv, statements: str) -> None:
    env.land(statements)


def run(env: PipelineEnv, statement: str) -> None:
    env.spark.sql(statement)


def interfere(env: PipelineEnv) -> None:
    """Do to idle tables in the lake what a careless hand does."""
    assert env.lake is not None
    ours = f"lake.{env.name}.public"
    run(env, f"drop table {ours}.dropped")
    snapshots = "select snapshot_id from {}.rolled_back.snapshots order by committed_at"
    first = env.spark.sql(snapshots.format(ours)).collect()[0][0]
    run(env, f"call lake.system.rollback_to_snapshot('{env.name}.public.rolled_back', {first})")
    before = env.spark.sql(
        f"select file from {ours}.pointed_back.metadata_log_entries where latest_snapshot_id <> "
        f"(select snapshot_id from {ours}.pointed_back.refs where name = 'main') order by timestamp desc limit 1"
    ).collect()[0][0]
    env.lake.database.execute(
        "update iceberg_tables set metadata_location = %s where table_namespace = %s and table_name = 'pointed_back'",
        before,
        f"{env.name}.public",
    )
    run(env, f"insert into {ours}.written values (50, 'foreign', null)")
    run(
        env,
        f"call lake.system.rewrite_data_files(table => '{env.name}.public.compacted', "
        "options => map('rewrite-all', 'true'))",
    )


def asked_about(env: PipelineEnv, attempt: str | None) -> set[str]:
    assert attempt is not None
    orders = MergePlan.loads(env.ctx.landing.read_text(layout.plan_file(env.ctx.name, attempt)))
    return {table.table for table in orders.tables if table.inspect}


@pytest.mark.slow
def test_an_idle_table_that_was_moved_pauses_in_the_next_cut_and_all_others_are_published(env16: PipelineEnv) -> None:
    make(env16)
    interfere(env16)
    change(env16, "insert into busy values (4, 'd')")

    attempt = env16.merge()

    foreign = dict.fromkeys(MOVED, ("paused", "foreign-commit"))
    assert env16.states() == {**foreign, **dict.fromkeys(("compacted", "idle", "busy"), ("ready", None))}
    assert asked_about(env16, attempt) == {*MOVED, "compacted"}
    assert env16.resync(*(f"public.{table}" for table in MOVED))
    assert set(env16.states().values()) == {("ready", None)}
    assert env16.unlike() == []
    change(env16, "insert into busy values (5, 'e')")
    assert asked_about(env16, env16.merge()) == set(), "what was looked at once is known"


@pytest.mark.slow
def test_an_idle_table_that_is_moved_before_the_publish_keeps_the_cut_back_once(env16: PipelineEnv) -> None:
    make(env16, ("idle", "busy"))
    change(env16, "insert into busy values (4, 'd')")
    attempt = env16.prepared()
    run(env16, f"drop table lake.{env16.name}.public.idle")
    before = env16.ctx.ledger.merges.last_cut(env16.name)

    with pytest.raises(LakeError, match=r"publish-conflict.*public\.idle"):
        merge.publish(env16.ctx, attempt)

    assert env16.ctx.ledger.merges.last_cut(env16.name) == before
    env16.merge()
    assert env16.states() == {"idle": ("paused", "foreign-commit"), "busy": ("ready", None)}
    assert sorted(env16.lake_rows("busy", "id")) == [(1,), (2,), (3,), (4,)]


@pytest.mark.slow
def test_a_commit_in_the_middle_of_maintenance_is_not_taken_for_ours(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(env16, ("idle", "busy"))
    expire = table_maintenance.TableMaintenance._expire

    def wrapped(self: table_maintenance.TableMaintenance) -> int:
        if self.order.target[-1] == "idle":
            run(env16, f"insert into lake.{env16.name}.public.idle values (50, 'foreign', null)")
        return expire(self)

    monkeypatch.setattr(table_maintenance.TableMaintenance, "_expire", wrapped)
    env16.maintain()
    change(env16, "insert into busy values (4, 'd')")

    env16.merge()

    assert env16.states() == {"idle": ("paused", "foreign-commit"), "busy": ("ready", None)}


@pytest.mark.slow
def test_our_own_maintenance_and_dead_runs_are_no_foreign_hand(env16: PipelineEnv) -> None:
    make(env16, ("idle", "busy"))
    env16.maintain()
    change(env16, "insert into busy values (4, 'd'); insert into idle values (4, 'd')")
    env16.prepared()  # what it staged stays

    env16.merge()
    env16.merge(force=True)

    assert set(env16.states().values()) == {("ready", None)}
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_merge_reads_nothing_of_the_runs_before(env16: PipelineEnv) -> None:
    make(env16, ("idle", "busy"))
    env16.sql("alter table idle add column more int default 7")
    change(env16, "insert into busy values (4, 'd')")
    shutil.rmtree(env16.landing / env16.name / "runs")

    env16.merge()

    assert {row[0] for row in env16.lake_rows("idle", "more")} == {7}
    shutil.rmtree(env16.landing / env16.name / "runs")
    assert env16.maintain() is not None
    shutil.rmtree(env16.landing / env16.name / "runs")
    change(env16, "delete from busy where id = 1")
    env16.merge()
    assert env16.unlike() == []
