"""Changes that meet other rows than they should are counted and told, until a comparison or a new copy ends the doubt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.flow import status
from penstock.flow.health import check as health
from penstock.flow.health.alerts import Alert, Delivery
from penstock.flow.merge import lake_lock
from penstock.flow.merge import run as merge
from penstock.flow.rebuild import run as rebuild
from penstock.flow.verify import run as verify
from penstock.ledger.verifications import VerifiedTable
from penstock.page import views
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import equal, flush

pytestmark = pytest.mark.spark


def begin(world: PipelineEnv) -> None:
    world.sql(
        "create table t (id int primary key, s text); insert into t select n, 'a' from generate_series(1, 9) n;"
        "create table sound (id int primary key, d date); insert into sound values (1, null)"
    )
    world.bootstrap()


def change(world: PipelineEnv, statements: str) -> None:
    world.sql(statements)
    flush(world)
    world.capture()


def lose(world: PipelineEnv, statements: str) -> None:
    """Let changes be captured, and then be gone from the landing zone without a trace."""
    change(world, statements)
    for entry in world.ctx.ledger.windows.all(world.name)[-1].files:
        path = world.landing / entry.path
        landed = pq.read_table(path)
        pq.write_table(landed.slice(0, 0), path)
    publish(world, None)


def publish(world: PipelineEnv, deliver: Callable[[Alert], Delivery] | None) -> None:
    with lake_lock.merge_lock(world.ctx):
        attempt = merge.plan(world.ctx)
        assert attempt is not None
        world.submit(merge.job(world.ctx, attempt))
        merge.publish(world.ctx, attempt, deliver=deliver)


def known(world: PipelineEnv) -> dict[str, VerifiedTable]:
    return {table.name: table for table in world.ctx.ledger.verifications.tables(world.name)}


def counted(world: PipelineEnv) -> dict[str, Any]:
    """Return what the last cut counted, as the ledger has it."""
    cut = world.ctx.ledger.merges.last_cut(world.name)
    assert cut is not None
    return {table["name"]: table["counts"] for table in cut.tables if "counts" in table}


def shown(world: PipelineEnv) -> dict[str, dict[str, int]]:
    """Return what the last cut counted, as readers of the lake see it."""
    assert world.spark is not None
    world.spark.sql(f"refresh table lake.{world.name}._penstock_cuts")
    (row,) = world.spark.sql(
        f"select conflicts from lake.{world.name}._penstock_cuts order by published_at desc limit 1"
    ).collect()
    return {each["name"]: {k: v for k, v in each.asDict().items() if v and k != "name"} for each in row["conflicts"]}


def test_the_first_conflict_is_told_and_ends_with_a_comparison_or_a_copy(world16: PipelineEnv) -> None:
    told: list[tuple[str, str, str]] = []

    def deliver(alert: Alert) -> Delivery:
        told.append((alert.happening, alert.alarm.slug, alert.alarm.subject))
        return Delivery(taken=1)

    begin(world16)
    lose(world16, "insert into t values (50, 'lost'), (51, 'lost'); delete from t where id = 1")
    assert (counted(world16), told) == ({}, [])
    change(
        world16,
        "update t set s = 'b' where id in (2, 50); delete from t where id = 51; insert into t values (1, 'again');"
        "insert into sound values (2, 'infinity')",
    )

    publish(world16, deliver)

    met = {"update_missing": 1, "delete_missing": 1, "insert_existing": 1}
    assert counted(world16) == {"t": met, "sound": {"misfits": 1}}
    assert shown(world16) == {f"{world16.name}.public.t": met, f"{world16.name}.public.sound": {"misfits": 1}}
    assert told == [("opened", "divergence-suspected", "public.t")]
    lines = dict(status.lines(status.status(world16.ctx)))
    assert lines["conflicts public.t"].startswith("[divergence-suspected] update_missing 1, delete_missing 1,")
    assert lines["misfits public.sound"].startswith("1 values")
    with world16.ctx.ledger.page.panels() as panel:
        page = {row.name: views.table(row) for row in panel.tables(world16.name)}
    assert (page["t"].conflicts, page["t"].suspected, page["sound"].misfits) == (met, True, 1)
    assert {each.slug for each in health.look(world16.ctx).findings} >= {"divergence-suspected"}

    change(world16, "delete from t where id = 3")
    publish(world16, deliver)
    assert counted(world16) == {}
    assert known(world16)["t"].conflicts == met, "counted since the copy"
    assert len(told) == 1

    verify.verify(world16.ctx, merge=merging(world16), deliver=deliver)
    assert told[1:] == [("closed", "divergence-suspected", "public.t")]
    assert not known(world16)["t"].suspected

    lose(world16, "insert into t values (60, 'lost')")
    change(world16, "delete from t where id = 60")
    publish(world16, deliver)
    assert told[2:] == [("opened", "divergence-suspected", "public.t")]
    assert known(world16)["t"].delete_missing == 2
    ids = rebuild.resync(world16.ctx, ["public.t"], world16.submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)
    assert known(world16)["t"].conflicts == {}
    assert [each for each in world16.ctx.ledger.health.alarms(world16.name) if each.closed_at is None] == []
    equal(world16)


@pytest.mark.slow
def test_what_a_copy_and_the_changes_beside_it_have_in_common_is_no_conflict(world16: PipelineEnv) -> None:
    begin(world16)

    def submit(job: Any) -> None:
        change(
            world16, "insert into t select max(id) + 1, 'c' from t; delete from t where id = (select min(id) from t)"
        )
        world16.submit(job)
        change(
            world16, "insert into t select max(id) + 1, 'c' from t; delete from t where id = (select min(id) from t)"
        )

    ids = rebuild.resync(world16.ctx, ["public.t"], submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)

    assert known(world16)["t"].conflicts == {}
    assert world16.ctx.ledger.health.alarms(world16.name) == []
    equal(world16)


def merging(world: PipelineEnv) -> Callable[[], None]:
    def run(*_: Any) -> None:
        publish(world, None)

    return run
