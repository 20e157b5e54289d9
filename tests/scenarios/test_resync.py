"""A table is copied anew while everything else goes on; afterwards source and lake are equal."""

from __future__ import annotations

import pytest

from penstock.flow import rebuild
from penstock.flow.spark_job import SparkJob
from tests.scenarios.recovery import AFTER, LOST, SHOP, equal, flush, follows, shown
from tests.world import World

pytestmark = pytest.mark.spark


def test_a_table_is_copied_anew_while_others_go_on_and_the_old_one_stays_readable(world: World) -> None:
    world.sql(SHOP)
    world.bootstrap()
    before = shown(world)
    seen = []

    def submit(job: SparkJob) -> None:
        world.sql(AFTER)
        flush(world)
        world.submit(job)
        world.sql(LOST if not seen else AFTER)
        flush(world)
        world.capture()
        seen.append(job.name)

    ids = rebuild.resync(world.ctx, ["public.item", "public.visit"], submit)

    assert shown(world) == before
    assert len(seen) == 2
    assert rebuild.switch(world.ctx, ids, world.submit)
    equal(world)
    assert {row[0] for row in world.lake_rows("item")}.isdisjoint({4, 5, 6})
    follows(world)
    assert {each.state for each in world.ctx.ledger.rebuilds(world.name, states=None)} == {"done"}
    assert world.ctx.ledger.rebuilds(world.name) == []
