"""A verification that is killed leaves no slot, no open transaction, and a mark that the next one takes away."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.flow.verify.run import verify
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.faults.conftest import run
from tests.faults.steps import Step
from tests.pipeline_env import PipelineEnv

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


@pytest.fixture
def shop(postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path: Path) -> Iterator[PipelineEnv]:
    """A pipeline whose table is in a cut; the verifications are processes without Spark."""
    with (
        postgres16.temporary_database("faults_verify") as source,
        postgres16.temporary_database("faults_verify_ledger") as ledger,
    ):
        env = PipelineEnv(source, ledger, tmp_path / "landing", source.name, lake=lake, spark=spark)
        env.settings = {"source": {"slot": source.name, "publication": source.name}, "verify": {"wait": "1s"}}
        env.sql("create table t (id int primary key); insert into t select generate_series(1, 100)")
        env.bootstrap()
        yield env


def left(env: PipelineEnv) -> list[tuple[str]]:
    """Return what must not stay at the source; the server takes a moment to notice that a process has gone."""
    query = (
        "select slot_name::text from pg_replication_slots where temporary union all "
        f"select application_name from pg_stat_activity where application_name like 'penstock:{env.name}:verify%'"
    )
    deadline = time.monotonic() + 30
    while (found := env.sql(query)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


@pytest.mark.slow
def test_a_verification_killed_anywhere_leaves_nothing_at_the_source_and_no_mark_for_ever(shop: PipelineEnv) -> None:
    for step, when in STEPS:
        shop.sql("insert into t select max(id) + 1 from t")
        process = run(shop, "verify", step, when, "1")
        assert process.returncode == -signal.SIGKILL, f"{step} was never reached: {process.stderr[-2000:]}"
        assert left(shop) == [], (step, when)
        assert len(shop.ctx.ledger.barriers.all(shop.name)) <= 1, (step, when)

    (mark,) = shop.ctx.ledger.barriers.all(shop.name)
    shop.sql("insert into t values (-1)")
    assert run(shop, "capture").returncode == 0
    windows = shop.ctx.ledger.windows.all(shop.name)
    assert mark.lsn in {window.upto_lsn for window in windows}
    assert windows[-1].upto_lsn > mark.lsn, "a capture goes past the mark of a verification that is no more"

    unharmed = run(shop, "verify")
    assert "[verify-late]" in unharmed.stderr, unharmed.stderr[-2000:]
    assert left(shop) == []
    assert shop.ctx.ledger.barriers.all(shop.name) == []
    shop.merge()
    shop.settings["verify"] = {"wait": "5m"}  # now a merge runs, however long that takes
    assert verify(shop.ctx, merge=lambda: str(shop.merge() or "")).differing == []
