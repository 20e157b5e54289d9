"""Drivers whose clocks jump, around a whole pipeline: nothing is published by a wrong clock, and no merge waits for a time to come."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import LakeError
from penstock.flow.load import run as rebuild
from penstock.flow.merge import run as merge
from tests.clocks import jumping, metadata_files, move_into_the_future
from tests.env_fixtures import RealSubmit
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import LANDED, SHOP, follows

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)


@pytest.fixture
def shop(env16: PipelineEnv) -> PipelineEnv:
    """A pipeline with a window that is not merged."""
    env16.bootstrap(SHOP)
    env16.land(LANDED)
    return env16


def shown(env: PipelineEnv) -> dict[str, str]:
    assert env.lake is not None
    return metadata_files(env.lake.database.connect, env.name)


def test_a_clock_that_jumps_after_it_was_looked_at_publishes_nothing(shop: PipelineEnv) -> None:
    before = shown(shop)

    with pytest.raises(LakeError, match=r"^\[clock-skew\].*ahead of it; nothing was published"):
        merge.merge(shop.ctx, jumping(shop.submit))

    assert shown(shop) == before
    shop.merge()
    assert shop.unlike() == []
    follows(shop)


def test_merges_resyncs_and_maintenance_go_on_over_times_that_have_not_come_yet(shop: PipelineEnv) -> None:
    assert shop.lake is not None
    shop.settings["maintain"] = {"small_files": 2}
    for work in (shop.merge, shop.maintain, lambda: follows(shop)):
        move_into_the_future(shop.lake.database.connect, shop.name)
        work()
    move_into_the_future(shop.lake.database.connect, shop.name)
    ids = rebuild.resync(shop.ctx, ["public.item"], shop.submit)
    assert rebuild.switch(shop.ctx, ids, shop.submit)

    assert shop.unlike() == []
    follows(shop)


@pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed (Debian: apt-get install faketime)")
def test_a_real_driver_with_a_wrong_clock_ends_with_the_name_of_it(shop: PipelineEnv, real_submit: RealSubmit) -> None:
    before, submit = shown(shop), real_submit(print)
    wrong = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+1h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    with pytest.raises(LakeError, match=r"^\[clock-skew\].*got 3[56]\d\d s ahead; nothing was written"):
        merge.merge(shop.ctx, lambda job: submit(replace(job, environment={**job.environment, **wrong})))

    assert shown(shop) == before
    merge.merge(shop.ctx, submit)
    assert shop.unlike() == []


def test_a_lost_warehouse_is_named_by_a_real_driver(shop: PipelineEnv, real_submit: RealSubmit) -> None:
    assert shop.lake is not None
    shutil.rmtree(shop.lake.warehouse / shop.name)

    with pytest.raises(LakeError, match=r"^\[cuts-unreadable\].*resync a table"):
        merge.merge(shop.ctx, real_submit(print))
