"""What a pipeline stands on is lost, or put back from a backup: each way of the page ends with source = lake."""

import shutil
from collections.abc import Callable

import pytest

from penstock.errors import LakeError, LedgerError, PenstockError
from penstock.flow.context import Context
from penstock.flow.guards import record_errors
from penstock.flow.load import run as rebuild
from penstock.flow.merge import lake_state
from penstock.flow.recover import resume
from penstock.flow.recover import run as recover
from tests.pipeline_env import PipelineEnv
from tests.scenarios import backups
from tests.scenarios.backups import PutBack
from tests.scenarios.recovery import LANDED, LOST, SHOP, consume, follows, recovered
from tests.waiting import wait_until

pytestmark = pytest.mark.spark
TABLES = ("public.item", "public.visit", "public.Order Line")


def begin(env: PipelineEnv) -> None:
    env.bootstrap(SHOP)


def goes_on(env: PipelineEnv, statements: str = LANDED) -> None:
    """Change rows, capture and merge."""
    env.follow(statements)


# --- the lake's files ---------------------------------------------------------------------------------


def test_a_lost_warehouse_has_a_name_and_a_resync_begins_the_table_of_cuts_anew(env16: PipelineEnv) -> None:
    begin(env16)
    shutil.rmtree(backups.warehouse(env16))
    env16.land(LANDED)

    with pytest.raises(LakeError, match=r"^\[cuts-unreadable\].*NotFoundException"):
        env16.merge()
    ids = rebuild.resync(env16.ctx, TABLES, env16.submit)
    assert rebuild.switch(env16.ctx, ids, env16.submit)

    assert env16.unlike() == []
    assert any("the table of cuts was begun anew with cut" in line for line in env16.lines)
    assert len(cuts(env16)) == 1
    follows(env16)
    assert len(cuts(env16)) == 2


def cuts(env: PipelineEnv) -> list[tuple[object, ...]]:
    name = f"lake.{env.name}._penstock_cuts"
    env.spark.sql(f"refresh table {name}")
    return [tuple(row) for row in env.spark.sql(f"select era, cut_lsn from {name} order by 1, 2").collect()]


@pytest.mark.slow
def test_maintenance_drops_what_a_lost_warehouse_has_left_in_the_catalog(env16: PipelineEnv) -> None:
    env16.settings["maintain"] = {"old_tables": "1s"}
    begin(env16)
    shutil.rmtree(backups.warehouse(env16))
    ids = rebuild.resync(env16.ctx, TABLES, env16.submit)
    rebuild.switch(env16.ctx, ids, env16.submit)
    assert len(left_behind(env16)) == 4

    def gone() -> bool:
        env16.maintain()
        return left_behind(env16) == []

    wait_until(gone, "maintenance that drops the old tables, a while after it has seen them")
    follows(env16)


def left_behind(env: PipelineEnv) -> list[tuple[object, ...]]:
    assert env.lake is not None
    old = f"table_namespace like '{env.name}.\\_penstock\\_%'"
    return env.lake.database.execute(f"select table_namespace, table_name from iceberg_tables where {old}")


# --- ledger, catalog, lake: one of them put back while the others are not -------------------------------


def ledger(env: PipelineEnv) -> PutBack:
    return backups.of_ledger(env)


def catalog(env: PipelineEnv) -> PutBack:
    return backups.of_catalog(env)


def lake(env: PipelineEnv) -> PutBack:
    return backups.of_folder(backups.warehouse(env))


def landing(env: PipelineEnv) -> PutBack:
    return backups.of_folder(env.landing)


def work(env: PipelineEnv) -> None:
    """Do what the schedule does."""
    with record_errors(env.ctx):
        env.follow()


ALONE_AND_TOGETHER: list[tuple[tuple[Callable[[PipelineEnv], PutBack], ...], str]] = [
    ((ledger,), "slot-ahead"),
    ((catalog,), "foreign-commit"),
    ((lake,), "cuts-unreadable"),
    ((catalog, lake), "foreign-commit"),
    ((ledger, catalog), "slot-ahead"),
    ((ledger, lake), "slot-ahead"),
    ((ledger, landing), "slot-ahead"),
    ((ledger, catalog, lake, landing), "slot-ahead"),
]


@pytest.mark.parametrize(
    ("parts", "slug"),
    [ALONE_AND_TOGETHER[0], *(pytest.param(*each, marks=pytest.mark.slow) for each in ALONE_AND_TOGETHER[1:])],
    ids=[" and ".join(part.__name__ for part in parts) for parts, _ in ALONE_AND_TOGETHER],
)
def test_what_was_put_back_to_an_older_backup_has_a_name_and_is_recovered(
    env16: PipelineEnv, parts: tuple[Callable[[PipelineEnv], PutBack], ...], slug: str
) -> None:
    begin(env16)
    backup = [part(env16) for part in parts]
    goes_on(env16)
    for put_back in backup:
        put_back()
    env16.flush(LOST)

    recovers_from(env16, slug)


@pytest.mark.slow
def test_a_ledger_from_before_merges_alone_has_a_name_and_is_recovered(env16: PipelineEnv) -> None:
    begin(env16)
    env16.land(LANDED)
    put_back = backups.of_ledger(env16)
    env16.merge()
    put_back()

    recovers_from(env16, "foreign-commit")


@pytest.mark.slow
def test_a_ledger_from_before_a_recovery_has_a_name_and_is_recovered(env16: PipelineEnv) -> None:
    begin(env16)
    put_back = backups.of_ledger(env16)
    for _ in range(2):  # the lake has seen eras 2 and 3, the ledger is of era 1
        consume(env16)
        recovered(env16)
    goes_on(env16)
    put_back()
    env16.flush(LOST)

    recovers_from(env16, "slot-ahead")


@pytest.mark.slow
def test_a_lake_that_is_lost_as_a_whole_is_recovered(env16: PipelineEnv) -> None:
    begin(env16)
    shutil.rmtree(backups.warehouse(env16))
    env16.flush(LANDED)

    recovers_from(env16, "cuts-unreadable")


@pytest.mark.slow
def test_a_catalog_that_is_lost_is_recovered_when_its_tables_are_made_again(env16: PipelineEnv) -> None:
    begin(env16)
    assert env16.lake is not None
    env16.lake.database.execute(f"delete from iceberg_tables where table_namespace like '{env16.name}%'")
    env16.flush(LANDED)

    recovers_from(env16, "foreign-commit")


@pytest.mark.slow
def test_a_halt_for_the_lake_is_not_resumed_before_the_lake_is_right(env16: PipelineEnv) -> None:
    begin(env16)
    put_back = backups.of_catalog(env16)
    goes_on(env16)
    newer = backups.of_catalog(env16, "newer")
    put_back()
    recover.begin(env16.ctx, recover.assess(env16.ctx))

    with pytest.raises(LakeError, match="foreign-commit"):
        resume.resume(env16.ctx)
    newer()
    resume.resume(env16.ctx)

    follows(env16)


@pytest.mark.slow
def test_a_cut_that_is_published_while_recovery_looks_is_no_reason_to_recover(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(env16)
    looked = lake_state._problem

    def meanwhile(ctx: Context, expected: int) -> LakeError | None:
        monkeypatch.setattr(lake_state, "_problem", looked)
        goes_on(env16)
        return looked(ctx, expected)

    monkeypatch.setattr(lake_state, "_problem", meanwhile)

    with pytest.raises(LedgerError, match="nothing-to-recover"):
        recover.assess(env16.ctx)
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_ledger_that_is_lost_is_begun_by_a_bootstrap_without_the_old_slot(env16: PipelineEnv) -> None:
    empty = backups.of_ledger(env16)
    begin(env16)
    goes_on(env16)
    empty()
    env16.flush(LOST)

    with pytest.raises(PenstockError, match=r"slot-exists|landing-changed"):
        env16.bootstrap()
    env16.sql(f"select pg_drop_replication_slot('{env16.ctx.pipeline.slot}')")
    with pytest.raises(PenstockError, match="landing-changed"):
        env16.bootstrap()
    (env16.landing / env16.name).rename(env16.landing / f"{env16.name}.old")
    env16.bootstrap()

    assert env16.unlike() == []
    follows(env16)


@pytest.mark.slow
def test_a_landing_zone_from_before_a_window_that_is_due_is_recovered_without_it(env16: PipelineEnv) -> None:
    begin(env16)
    put_back = landing(env16)
    env16.land(LANDED)
    put_back()
    env16.flush(LOST)

    with pytest.raises(LakeError, match="landing-file-missing"):
        work(env16)
    recovered(env16, merge_first=False)

    assert env16.unlike() == []
    follows(env16)


@pytest.mark.slow
def test_a_landing_zone_from_before_windows_that_are_merged_is_missed_by_nobody_but_a_replay(
    env16: PipelineEnv,
) -> None:
    begin(env16)
    put_back = landing(env16)
    goes_on(env16)
    put_back()

    follows(env16)
    with pytest.raises(LakeError, match=r"range-unavailable.*resync the table"):
        rebuild.replay(env16.ctx, rebuild.Replay(("public.item",)), env16.submit)


@pytest.mark.slow
def test_a_landing_zone_that_is_lost_gets_its_mark_back_and_is_recovered_without_what_was_due(
    env16: PipelineEnv,
) -> None:
    begin(env16)
    env16.land(LANDED)
    shutil.rmtree(env16.landing)

    with pytest.raises(PenstockError, match="landing-changed"):
        work(env16)
    (mark,) = env16.ledger.execute("select landing_mark from penstock.pipeline where name = %s", env16.name)
    zone = env16.landing / env16.name
    zone.mkdir(parents=True)
    (zone / "landing-mark.txt").write_text(f"{mark[0]}\n")
    with pytest.raises(PenstockError, match="landing-file-missing"):
        work(env16)
    recovered(env16, merge_first=False)

    assert env16.unlike() == []
    follows(env16)


def recovers_from(env: PipelineEnv, slug: str) -> None:
    """See the work fail by this name, recover, and see source and lake equal from then on."""
    with pytest.raises(PenstockError, match=rf"^\[{slug}\]"):
        work(env)
    said = recover.assess(env.ctx)
    assert said.slug == slug
    if any(line.startswith("you must run: select pg_drop_replication_slot(") for line in said.lines):
        env.sql(
            f"select pg_drop_replication_slot('{env.ctx.pipeline.slot}')"
        )  # it may be another's, by what the ledger knows
    recovered(env)
    assert env.unlike() == []
    follows(env)
    with pytest.raises(LedgerError, match="nothing-to-recover"):
        recover.assess(env.ctx)
