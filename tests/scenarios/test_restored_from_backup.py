"""What a pipeline stands on is lost, or put back from a backup: each way of the page ends with source = lake."""

from __future__ import annotations

import shutil

import pytest

from penstock.errors import LakeError
from penstock.flow.rebuild import run as rebuild
from tests.pipeline_env import PipelineEnv
from tests.scenarios import backups
from tests.scenarios.recovery import LANDED, SHOP, equal, flush, follows
from tests.waiting import wait_until

pytestmark = pytest.mark.spark
TABLES = ("public.item", "public.visit", "public.Order Line")


def begin(env: PipelineEnv) -> None:
    env.sql(SHOP)
    env.bootstrap()


def goes_on(env: PipelineEnv, statements: str = LANDED) -> None:
    """Change rows, capture and merge."""
    env.sql(statements)
    flush(env)
    env.capture()
    env.merge()


# --- the lake's files ---------------------------------------------------------------------------------


def test_a_lost_warehouse_has_a_name_and_a_resync_begins_the_table_of_cuts_anew(env16: PipelineEnv) -> None:
    begin(env16)
    shutil.rmtree(backups.warehouse(env16))
    env16.sql(LANDED)
    flush(env16)
    env16.capture()

    with pytest.raises(LakeError, match=r"^\[cuts-unreadable\].*NotFoundException"):
        env16.merge()
    ids = rebuild.resync(env16.ctx, TABLES, env16.submit)
    assert rebuild.switch(env16.ctx, ids, env16.submit)

    equal(env16)
    assert any("the table of cuts was begun anew with cut" in line for line in env16.lines)
    assert len(cuts(env16)) == 1
    follows(env16)
    assert len(cuts(env16)) == 2


def cuts(env: PipelineEnv) -> list[tuple[object, ...]]:
    assert env.spark is not None
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
