"""Tables are rebuilt from the landing zone: in place they are what the source is, a shadow is what the source was."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import LakeError, LedgerError
from penstock.flow.rebuild import run as rebuild
from penstock.flow.rebuild.replay_request import sources
from penstock.flow.rebuild.run import Replay
from penstock.lsn import Lsn
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import LANDED, LOST, SHOP, equal, flush, follows, shown, traces

pytestmark = pytest.mark.spark

TABLES = ("public.item", "public.visit", "public.Order Line")


def begin(world: PipelineEnv) -> None:
    """Bootstrap, and merge two windows."""
    world.sql(SHOP)
    world.bootstrap()
    for changes in (LANDED, LOST):
        world.sql(changes)
        flush(world)
        world.capture()
        world.merge()


def test_a_bad_edit_by_hand_is_undone_in_one_cut(world16: PipelineEnv) -> None:
    world16.settings["merge"] = {"rebuild_bytes": 1}
    begin(world16)
    assert world16.spark is not None
    world16.spark.sql(f"update lake.{world16.name}.public.item set name = 'a bad edit'")
    world16.spark.sql(f"delete from lake.{world16.name}.public.visit")
    wrong, before = shown(world16), traces(world16)
    runs = []
    request = Replay(TABLES)
    lines = [source.line() for source in sources(world16.ctx, request)]
    assert traces(world16) == before, "a dry run changes nothing"
    assert "public.item: copy" in lines[0]
    assert "and 2 windows since (7 changes, " in lines[0]
    assert "in place of" in lines[0]

    def submit(job: Any) -> None:
        runs.append(job)
        world16.submit(job)

    ids = rebuild.replay(world16.ctx, request, submit)

    assert len(runs) == 2, "so small a chunk holds one window"
    assert shown(world16) == wrong
    world16.sql("update item set name = 'the source continues' where id = 9")
    flush(world16)
    world16.capture()
    assert rebuild.switch(world16.ctx, ids, world16.submit)
    equal(world16)
    follows(world16)
    assert [each.kind for each in world16.ctx.ledger.rebuilds.all(world16.name, states=["done"])] == ["replay"] * 3


@pytest.mark.slow
def test_a_shadow_is_what_the_source_was_at_a_position_or_a_time(world16: PipelineEnv) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    world16.capture()
    places = []
    for number, changes in enumerate((LANDED, LOST, "truncate visit", "insert into visit values ('x', 1), ('x', 1)")):
        world16.sql(changes)
        flush(world16)
        if number == 1:
            world16.capture()
        lsn, at = world16.sql("select pg_current_wal_insert_lsn()::text, clock_timestamp()::text")[0]
        places.append((lsn, at, at_source(world16)))
        world16.sql("select pg_sleep(0.05)")
    flush(world16)
    world16.capture()
    world16.merge()
    before = shown(world16)

    for number, (lsn, at, then) in enumerate(places):
        suffix, upto = (f"time{number}", at) if number % 2 else (f"lsn{number}", lsn)
        rebuild.replay(world16.ctx, Replay(TABLES, upto=upto, shadow=suffix), world16.submit)
        assert {table: sorted(world16.lake_rows(f"{table}__{suffix}")) for table in before} == then, upto

    assert shown(world16) == before
    with pytest.raises(LakeError, match=r"shadow-exists.*item__lsn0"):
        rebuild.replay(world16.ctx, Replay(TABLES, shadow="lsn0"), world16.submit)
    follows(world16)


@pytest.mark.slow
def test_a_time_before_a_resync_is_reached_by_the_copy_before_it(world16: PipelineEnv) -> None:
    begin(world16)
    lsn = world16.sql("select pg_current_wal_insert_lsn()::text")[0][0]
    then = at_source(world16)
    world16.sql("alter table item drop price; alter table item add column colour int default 3")
    world16.sql("delete from item")
    between = world16.sql("select pg_current_wal_insert_lsn()::text")[0][0]
    flush(world16)
    world16.capture()
    ids = rebuild.resync(world16.ctx, ["public.item"], world16.submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)

    rebuild.replay(world16.ctx, Replay(("public.item",), upto=lsn, shadow="then"), world16.submit)

    assert sorted(world16.lake_rows("item__then")) == then["item"]
    with pytest.raises(LakeError, match=r"range-unavailable.*a column colour.*resync it"):
        rebuild.replay(world16.ctx, Replay(("public.item",), upto=between, shadow="between"), world16.submit)
    rebuild.replay(world16.ctx, Replay(("public.item",), shadow="now"), world16.submit)
    assert world16.lake_rows("item__now") == []
    equal(world16)


@pytest.mark.slow
def test_what_the_landing_zone_no_longer_holds_is_refused_with_what_is_left(world16: PipelineEnv) -> None:
    begin(world16)
    windows = world16.ctx.ledger.windows.all(world16.name)
    (entry,) = (each for each in windows[-1].files if each.path.split("/")[-1].startswith(str(oid(world16, "item"))))
    moved = world16.landing / f"{entry.path}.away"
    (world16.landing / entry.path).rename(moved)
    with pytest.raises(LakeError, match=r"range-unavailable.*restore the file, or resync the table"):
        rebuild.replay(world16.ctx, Replay(("public.item",)), world16.submit)
    moved.rename(world16.landing / entry.path)

    world16.ledger.execute("delete from penstock.window where upto_lsn <= %s::pg_lsn", str(windows[1].upto_lsn))
    with pytest.raises(LakeError, match=r"range-unavailable.*resync it"):
        rebuild.replay(world16.ctx, Replay(("public.item",)), world16.submit)

    ids = rebuild.resync(world16.ctx, ["public.item"], world16.submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)
    rebuild.replay(world16.ctx, Replay(("public.item",), shadow="again"), world16.submit)
    assert sorted(world16.lake_rows("item__again")) == at_source(world16)["item"]
    first = min(each.lsn for each in world16.ctx.ledger.tables.copies(world16.name))
    with pytest.raises(LakeError, match=r"range-unavailable.*available is ") as refused:
        rebuild.replay(world16.ctx, Replay(("public.item",), upto=str(Lsn(first)), shadow="gone"), world16.submit)
    assert str(max(each.lsn for each in world16.ctx.ledger.tables.copies(world16.name))) in str(refused.value)


@pytest.mark.slow
def test_beside_a_replay_another_one_and_a_resync_of_the_table_are_refused_by_name(world16: PipelineEnv) -> None:
    begin(world16)
    item, refused = Replay(("public.item",)), []

    def submit(job: Any) -> None:
        for work in (
            lambda: rebuild.replay(world16.ctx, item, world16.submit),
            lambda: rebuild.replay(world16.ctx, Replay(("public.item",), shadow="s"), world16.submit),
            lambda: rebuild.resync(world16.ctx, ["public.item"], world16.submit),
            lambda: rebuild.abandon(world16.ctx, ["public.item"]),
        ):
            with pytest.raises(LedgerError, match=r"work-under-way.*rebuild of public.item.*held by") as caught:
                work()
            refused.append(caught.value)
        raise RuntimeError("Spark died")

    with pytest.raises(RuntimeError):
        rebuild.replay(world16.ctx, item, submit)

    assert len(refused) == 4
    with pytest.raises(LedgerError, match=r"rebuild-open.*its replay .* is building since .*run replay again.*abandon"):
        rebuild.resync(world16.ctx, ["public.item"], world16.submit)
    ids = rebuild.resync(world16.ctx, ["public.visit"], world16.submit)  # another table's is its own affair
    ids += rebuild.replay(world16.ctx, item, world16.submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)
    equal(world16)
    follows(world16)


def oid(world: PipelineEnv, table: str) -> int:
    return next(each.oid for each in world.ctx.ledger.tables.all(world.name) if each.name == table)


def at_source(world: PipelineEnv) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a reader of the lake would see if it were the source; the mirror has `_misfits`, too."""
    names = ("item", "visit", "Order Line")
    return {name: sorted((*row, None) for row in world.sql(f'select * from "{name}"')) for name in names}
