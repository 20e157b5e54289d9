"""Changes that meet other rows than they should are counted and open an alarm, until a comparison or a new copy ends it."""

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.flow import status
from penstock.flow.health import run as health
from penstock.flow.health.alerts import Alert, Delivery
from penstock.flow.load import run as rebuild
from penstock.flow.merge import run as merge
from penstock.flow.verify import run as verify
from penstock.ledger.verifications import VerifiedTable
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark


def begin(env: PipelineEnv) -> None:
    env.bootstrap(
        "create table t (id int primary key, s text); insert into t select n, 'a' from generate_series(1, 9) n;"
        "create table sound (id int primary key, d date); insert into sound values (1, null)"
    )


def change(env: PipelineEnv, statements: str) -> None:
    env.land(statements)


def lose(env: PipelineEnv, statements: str) -> None:
    """Let changes be captured, and then be gone from the landing zone without a trace."""
    change(env, statements)
    for entry in env.ctx.ledger.windows.all(env.name)[-1].files:
        path = env.landing / entry.path
        landed = pq.read_table(path)
        pq.write_table(landed.slice(0, 0), path)
    publish(env, None)


def publish(env: PipelineEnv, deliver: Callable[[Alert], Delivery] | None) -> None:
    with merge.merge_lock(env.ctx):
        attempt = env.prepared()
        merge.publish(env.ctx, attempt, deliver=deliver)


def known(env: PipelineEnv) -> dict[str, VerifiedTable]:
    return {table.name: table for table in env.ctx.ledger.verifications.tables(env.name)}


def counted(env: PipelineEnv) -> dict[str, Any]:
    """Return what the last cut counted, as the ledger has it."""
    cut = env.ctx.ledger.merges.last_cut(env.name)
    assert cut is not None
    return {table["name"]: table["counts"] for table in cut.tables if "counts" in table}


def shown(env: PipelineEnv) -> dict[str, dict[str, int]]:
    """Return what the last cut counted, as readers of the lake see it."""
    env.spark.sql(f"refresh table lake.{env.name}._penstock_cuts")
    (row,) = env.spark.sql(
        f"select conflicts from lake.{env.name}._penstock_cuts order by published_at desc limit 1"
    ).collect()
    return {each["name"]: {k: v for k, v in each.asDict().items() if v and k != "name"} for each in row["conflicts"]}


@pytest.mark.slow
def test_the_first_conflict_is_reported_and_ends_with_a_comparison_or_a_copy(env16: PipelineEnv) -> None:
    alerts: list[tuple[str, str, str]] = []

    def deliver(alert: Alert) -> Delivery:
        alerts.append((alert.happening, alert.alarm.slug, alert.alarm.subject))
        return Delivery(taken=1)

    begin(env16)
    lose(env16, "insert into t values (50, 'lost'), (51, 'lost'); delete from t where id = 1")
    assert (counted(env16), alerts) == ({}, [])
    change(
        env16,
        "update t set s = 'b' where id in (2, 50); delete from t where id = 51; insert into t values (1, 'again');"
        "insert into sound values (2, 'infinity')",
    )

    publish(env16, deliver)

    met = {"update_missing": 1, "delete_missing": 1, "insert_existing": 1}
    assert counted(env16) == {"t": met, "sound": {"misfits": 1}}
    assert shown(env16) == {f"{env16.name}.public.t": met, f"{env16.name}.public.sound": {"misfits": 1}}
    assert alerts == [("opened", "divergence-suspected", "public.t")]
    lines = dict(status.lines(status.status(env16.ctx)))
    assert lines["conflicts public.t"].startswith("[divergence-suspected] update_missing 1, delete_missing 1,")
    assert lines["misfits public.sound"].startswith("1 value ")
    with env16.ctx.ledger.page.panels() as panel:
        page = {row.name: row for row in panel.tables(env16.name)}
    assert (page["public.t"].conflicts, page["public.t"].suspected, page["public.sound"].misfits) == (met, True, 1)
    assert {each.slug for each in health.judge_pipeline(env16.ctx).findings} >= {"divergence-suspected"}

    change(env16, "delete from t where id = 3")
    publish(env16, deliver)
    assert counted(env16) == {}
    assert known(env16)["t"].conflicts == met, "counted since the copy"
    assert len(alerts) == 1

    verify.verify(env16.ctx, merge=merging(env16), deliver=deliver)
    assert alerts[1:] == [("closed", "divergence-suspected", "public.t")]
    assert not known(env16)["t"].suspected

    lose(env16, "insert into t values (60, 'lost')")
    change(env16, "delete from t where id = 60")
    publish(env16, deliver)
    assert alerts[2:] == [("opened", "divergence-suspected", "public.t")]
    assert known(env16)["t"].delete_missing == 2
    assert env16.resync("public.t")
    assert known(env16)["t"].conflicts == {}
    assert [each for each in env16.ctx.ledger.health.alarms(env16.name) if each.closed_at is None] == []
    assert env16.unlike() == []


@pytest.mark.slow
def test_what_a_copy_and_the_changes_since_its_slot_have_in_common_is_no_conflict(env16: PipelineEnv) -> None:
    begin(env16)

    def submit(job: Any) -> None:
        change(env16, "insert into t select max(id) + 1, 'c' from t; delete from t where id = (select min(id) from t)")
        env16.submit(job)
        change(env16, "insert into t select max(id) + 1, 'c' from t; delete from t where id = (select min(id) from t)")

    ids = rebuild.resync(env16.ctx, ["public.t"], submit)
    assert rebuild.switch(env16.ctx, ids, env16.submit)

    assert known(env16)["t"].conflicts == {}
    assert env16.ctx.ledger.health.alarms(env16.name) == []
    assert env16.unlike() == []


def merging(env: PipelineEnv) -> Callable[[], None]:
    def run(*_: Any) -> None:
        publish(env, None)

    return run
