"""Two checkouts with one ledger, a volume that is not mounted, a zone that was moved: nothing lands where nobody looks."""

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import LakeError, LedgerError
from penstock.flow import check, landing_mark
from penstock.flow.changelog import run as changelog
from penstock.flow.changelog.coverage import Interval
from penstock.flow.load import bootstrap
from penstock.flow.maintain import run as maintain
from penstock.flow.merge import run as merge
from penstock.flow.spark_job import SparkJob
from penstock.landing import layout
from stack.servers.postgres import Server
from tests.pipeline_env import PipelineEnv, copy_without_spark
from tests.scenarios.members import begin


def another_checkout(env: PipelineEnv, landing: Path) -> PipelineEnv:
    """The same pipeline with the same ledger, and another `landing.uri`."""
    return replace(env, landing=landing, lines=[])


def mark(env: PipelineEnv) -> Path:
    return env.landing / layout.mark_file(env.name)


def write(env: PipelineEnv, number: int) -> None:
    env.flush(f"insert into t values ({number})")


def confirmed(env: PipelineEnv) -> str:
    ((lsn,),) = env.sql(
        f"select confirmed_flush_lsn from pg_replication_slots where slot_name = '{env.ctx.pipeline.slot}'"
    )
    return str(lsn)


def test_a_second_checkout_with_another_zone_lands_nothing_and_the_first_continues(
    env: PipelineEnv, tmp_path: Path
) -> None:
    begin(env)
    write(env, 2)
    second, before = another_checkout(env, tmp_path / "elsewhere"), confirmed(env)

    with pytest.raises(LakeError, match=r"landing-changed.*there is no such file") as caught:
        second.capture()

    assert str(second.landing) in caught.value.message
    assert confirmed(env) == before
    assert not second.landing.exists()
    assert env.ctx.ledger.windows.all(env.name) == []
    assert env.ctx.ledger.pipelines.get(env.name).state == "running"
    assert env.capture().changes == 1


def test_no_other_work_is_done_in_another_zone_either_and_check_says_so(env16: PipelineEnv, tmp_path: Path) -> None:
    begin(env16)
    write(env16, 2)
    env16.capture()
    ctx = another_checkout(env16, tmp_path / "elsewhere").ctx
    (window,) = env16.ctx.ledger.windows.all(env16.name)
    assert window.source_time is not None
    interval = Interval(window.source_time.replace(year=2020), window.source_time.replace(year=2021))
    works: list[Callable[[], object]] = [
        lambda: merge.plan(ctx, force=True),
        lambda: maintain.maintain(ctx, copy_without_spark),
        lambda: changelog.plan(ctx, interval),
        lambda: bootstrap.prepare(ctx),
        lambda: bootstrap.copy(ctx, copy_without_spark),
    ]

    for work in works:
        with pytest.raises(LakeError, match="landing-changed"):
            work()
    found = [(each.level, each.slug) for each in check.check(ctx) if each.subject == "landing.uri"]
    assert found == [("error", "landing-changed")]
    assert [each for each in check.check(env16.ctx) if each.subject == "landing.uri"] == []
    assert not (tmp_path / "elsewhere").exists()


def test_a_volume_that_is_not_mounted_keeps_the_slot_where_it_is_until_it_is_back(env16: PipelineEnv) -> None:
    begin(env16)
    write(env16, 2)
    before, away = confirmed(env16), env16.landing.with_name("unmounted")
    env16.landing.rename(away)
    env16.landing.mkdir()

    with pytest.raises(LakeError, match="landing-changed"):
        env16.capture()
    assert confirmed(env16) == before

    env16.landing.rmdir()
    away.rename(env16.landing)
    assert env16.capture().changes == 1


def test_a_zone_that_was_copied_elsewhere_brings_its_mark_along(env16: PipelineEnv, tmp_path: Path) -> None:
    begin(env16)
    write(env16, 2)
    shutil.copytree(env16.landing, tmp_path / "moved")

    assert another_checkout(env16, tmp_path / "moved").capture().changes == 1


def test_a_zone_that_is_lost_for_good_is_begun_anew_by_the_mark_of_the_ledger(env16: PipelineEnv) -> None:
    begin(env16)
    shutil.rmtree(env16.landing)
    write(env16, 2)
    with pytest.raises(LakeError, match="landing-changed"):
        env16.capture()

    ((known,),) = env16.ledger.execute("select landing_mark from penstock.pipeline")
    mark(env16).parent.mkdir(parents=True)
    mark(env16).write_text(f"{known}\n")

    assert env16.capture().changes == 1


def test_the_mark_of_another_ledger_is_refused_and_stays(env16: PipelineEnv, postgres16: Server) -> None:
    begin(env16)
    said = mark(env16).read_text()
    with postgres16.temporary_database(f"second_{env16.source.name}") as ledger:
        second = replace(env16, ledger=ledger, lines=[])
        with pytest.raises(LakeError, match=r"landing-changed.*another ledger's pipeline"):
            bootstrap.prepare(second.ctx)

    assert mark(env16).read_text() == said
    write(env16, 2)
    assert env16.capture().changes == 1


@pytest.mark.parametrize("step", ["write_text", "note_landing"])
def test_a_bootstrap_that_was_killed_while_it_marked_the_zone_marks_it_again(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str
) -> None:
    env16.sql("create table t (id int primary key)")
    ctx = env16.ctx
    owner = ctx.landing if step == "write_text" else ctx.ledger.pipelines
    calls = iter(range(9))
    done = getattr(owner, step)

    def killed(*given: object, **named: object) -> None:
        if step == "note_landing" and next(calls) == 0:
            done(*given, **named)
            return
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, step, killed)
    with pytest.raises(KeyboardInterrupt):
        bootstrap.prepare(ctx)
    monkeypatch.undo()
    assert mark(env16).exists() is (step == "note_landing")

    elsewhere = another_checkout(env16, tmp_path / "elsewhere")
    bootstrap.prepare(elsewhere.ctx)
    with pytest.raises(LakeError, match="landing-changed"):
        bootstrap.copy(env16.ctx, copy_without_spark)
    bootstrap.copy(elsewhere.ctx, copy_without_spark)
    landing_mark.require(elsewhere.ctx)


def test_after_a_teardown_the_next_bootstrap_may_land_elsewhere(env16: PipelineEnv, tmp_path: Path) -> None:
    begin(env16)
    env16.ctx.ledger.pipelines.tear_down(env16.name)
    env16.sql(f"select pg_drop_replication_slot('{env16.ctx.pipeline.slot}')")

    second = another_checkout(env16, tmp_path / "elsewhere")
    second.begin()

    write(second, 2)
    assert second.capture().changes == 1


def test_of_two_bootstraps_at_once_the_second_says_that_work_is_under_way(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "_KILLED_RUN_SECONDS", 0)
    env16.prepare("create table t (id int primary key); insert into t values (1)")
    at_work, over = threading.Event(), threading.Event()

    def slow(job: SparkJob) -> None:
        at_work.set()
        assert over.wait(60)
        copy_without_spark(job)

    first = threading.Thread(target=bootstrap.copy, args=(env16.ctx, slow))
    first.start()
    try:
        assert at_work.wait(60)
        for again in (bootstrap.prepare, lambda ctx: bootstrap.copy(ctx, copy_without_spark)):
            with pytest.raises(LedgerError, match=r"work-under-way.*first copy"):
                again(env16.ctx)
    finally:
        over.set()
        first.join(60)
    assert [table.state for table in env16.tables] == ["copied"]
    assert bootstrap.copy(env16.ctx, copy_without_spark) == []
