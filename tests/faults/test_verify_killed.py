"""A verification that is killed leaves no slot, no open transaction, and a mark that the next one takes away."""

import pytest

from penstock.flow.verify.run import verify
from tests.faults.conftest import NewPipeline
from tests.faults.harness import killed, run
from tests.faults.steps import Step
from tests.pipeline_env import PipelineEnv
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

STEPS = [
    (Step.SLOT_CREATED, "after"),
    (Step.MARK_ADDED, "before"),
    (Step.MARK_ADDED, "after"),
    (Step.VERIFICATION_BEGUN, "after"),
    (Step.VERIFIED_ROWS_READ, "after"),
    (Step.MARK_CAPTURED, "before"),
    (Step.MARK_CAPTURED, "after"),
]


@pytest.fixture(scope="module")
def shop(new_pipeline: NewPipeline) -> PipelineEnv:
    """A pipeline whose table is in a cut; the verifications are processes without Spark."""
    tables = "create table t (id int primary key); insert into t select generate_series(1, 100)"
    return new_pipeline("faults_verify", tables, apart=True, verify={"wait": "1s"})


def nothing_is_left(env: PipelineEnv) -> None:
    """Assert that nothing stays at the source; the server takes a moment to notice that a process has gone."""
    query = (
        "select slot_name::text from pg_replication_slots where temporary union all "
        f"select application_name from pg_stat_activity where application_name like 'penstock:{env.name}:verify%'"
    )
    wait_until(lambda: not env.sql(query), "slots and sessions of a verification are gone", seconds=30)


@pytest.mark.slow
def test_a_verification_killed_anywhere_leaves_nothing_at_the_source_and_no_mark_for_ever(shop: PipelineEnv) -> None:
    for kill in STEPS:
        shop.sql("insert into t select max(id) + 1 from t")
        killed(shop, "verify", *kill)
        nothing_is_left(shop)
        assert len(shop.ctx.ledger.barriers.all(shop.name)) <= 1, kill

    (mark,) = shop.ctx.ledger.barriers.all(shop.name)
    shop.sql("insert into t values (-1)")
    assert run(shop, "capture").returncode == 0
    windows = shop.ctx.ledger.windows.all(shop.name)
    assert mark in {window.upto_lsn for window in windows}
    assert windows[-1].upto_lsn > mark, "a capture goes past the mark of a verification that is no more"

    unharmed = run(shop, "verify")
    assert "[verify-late]" in unharmed.stderr, unharmed.stderr[-2000:]
    nothing_is_left(shop)
    assert shop.ctx.ledger.barriers.all(shop.name) == {}
    shop.merge()
    shop.settings["verify"] = {"wait": "5m"}  # now a merge runs, however long that takes
    assert verify(shop.ctx, merge=lambda: str(shop.merge() or "")).differing == []
