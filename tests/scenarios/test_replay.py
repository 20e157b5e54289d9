"""Tables are rebuilt from the landing zone: in place they are what the source is, a shadow is what the source was."""

from typing import Any

import pytest

from penstock.errors import LakeError, LedgerError
from penstock.flow.load import run as rebuild
from penstock.flow.load.replay_request import sources
from penstock.flow.load.run import Replay
from penstock.lsn import Lsn
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import LANDED, LOST, SHOP, follows, shown, traces

pytestmark = pytest.mark.spark

TABLES = ("public.item", "public.visit", "public.Order Line")


def begin(env: PipelineEnv) -> None:
    """Bootstrap, and merge two windows."""
    env.bootstrap(SHOP)
    for changes in (LANDED, LOST):
        env.follow(changes)


@pytest.mark.slow
def test_a_bad_edit_by_hand_is_undone_in_one_cut(env16: PipelineEnv) -> None:
    env16.settings["merge"] = {"rebuild_bytes": 1}
    begin(env16)
    env16.spark.sql(f"update lake.{env16.name}.public.item set name = 'a bad edit'")
    env16.spark.sql(f"delete from lake.{env16.name}.public.visit")
    wrong, before = shown(env16), traces(env16)
    runs = []
    request = Replay(TABLES)
    lines = [source.line() for source in sources(env16.ctx, request)]
    assert traces(env16) == before, "a dry run changes nothing"
    assert "public.item: copy" in lines[0]
    assert "and 2 windows since (7 changes, " in lines[0]
    assert "in place of" in lines[0]

    def submit(job: Any) -> None:
        runs.append(job)
        env16.submit(job)

    ids = rebuild.replay(env16.ctx, request, submit)

    assert len(runs) == 2, "so small a chunk holds one window"
    assert shown(env16) == wrong
    env16.land("update item set name = 'the source continues' where id = 9")
    assert rebuild.switch(env16.ctx, ids, env16.submit)
    assert env16.unlike() == []
    follows(env16)
    assert [each.cause for each in env16.ctx.ledger.loads.builds(env16.name, states=["done"])] == ["replay"] * 3


@pytest.mark.slow
def test_a_shadow_is_what_the_source_was_at_a_position_or_a_time(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    env16.capture()
    places = []
    for number, changes in enumerate((LANDED, LOST, "truncate visit", "insert into visit values ('x', 1), ('x', 1)")):
        env16.flush(changes)
        if number == 1:
            env16.capture()
        lsn, at = env16.sql("select pg_current_wal_insert_lsn()::text, clock_timestamp()::text")[0]
        places.append((lsn, at, at_source(env16)))
        env16.sql("select pg_sleep(0.05)")
    env16.follow()
    before = shown(env16)

    for number, (lsn, at, then) in enumerate(places):
        suffix, upto = (f"time{number}", at) if number % 2 else (f"lsn{number}", lsn)
        rebuild.replay(env16.ctx, Replay(TABLES, upto=upto, shadow=suffix), env16.submit)
        assert {table: sorted(env16.lake_rows(f"{table}__{suffix}")) for table in before} == then, upto

    assert shown(env16) == before
    with pytest.raises(LakeError, match=r"shadow-exists.*item__lsn0"):
        rebuild.replay(env16.ctx, Replay(TABLES, shadow="lsn0"), env16.submit)
    follows(env16)


@pytest.mark.slow
def test_a_time_before_a_resync_is_reached_by_the_copy_before_it(env16: PipelineEnv) -> None:
    begin(env16)
    lsn = env16.sql("select pg_current_wal_insert_lsn()::text")[0][0]
    then = at_source(env16)
    env16.sql("alter table item drop price; alter table item add column colour int default 3")
    env16.sql("delete from item")
    between = env16.sql("select pg_current_wal_insert_lsn()::text")[0][0]
    env16.land()
    assert env16.resync("public.item")

    rebuild.replay(env16.ctx, Replay(("public.item",), upto=lsn, shadow="then"), env16.submit)

    rows = sorted(env16.lake_rows("item__then"))
    assert [(*row[:3], *row[4:]) for row in rows] == then["item"]
    assert {row[3] for row in rows} == {3}, "a column that was followed before the next copy shows its default"
    rebuild.replay(env16.ctx, Replay(("public.item",), upto=between, shadow="between"), env16.submit)
    assert env16.lake_rows("item__between") == []
    rebuild.replay(env16.ctx, Replay(("public.item",), shadow="now"), env16.submit)
    assert env16.lake_rows("item__now") == []
    assert env16.unlike() == []


@pytest.mark.slow
def test_what_the_landing_zone_no_longer_holds_is_refused_with_what_is_left(env16: PipelineEnv) -> None:
    begin(env16)
    windows = env16.ctx.ledger.windows.all(env16.name)
    (entry,) = (each for each in windows[-1].files if each.path.split("/")[-1].startswith(str(env16.table("item").oid)))
    moved = env16.landing / f"{entry.path}.away"
    (env16.landing / entry.path).rename(moved)
    with pytest.raises(LakeError, match=r"range-unavailable.*restore the file, or resync the table"):
        rebuild.replay(env16.ctx, Replay(("public.item",)), env16.submit)
    moved.rename(env16.landing / entry.path)

    env16.ledger.execute("delete from penstock.window where upto_lsn <= %s::pg_lsn", str(windows[1].upto_lsn))
    with pytest.raises(LakeError, match=r"range-unavailable.*resync it"):
        rebuild.replay(env16.ctx, Replay(("public.item",)), env16.submit)

    assert env16.resync("public.item")
    rebuild.replay(env16.ctx, Replay(("public.item",), shadow="again"), env16.submit)
    assert sorted(env16.lake_rows("item__again")) == at_source(env16)["item"]
    first = min(each.lsn for each in env16.ctx.ledger.loads.copies(env16.name))
    with pytest.raises(LakeError, match=r"range-unavailable.*available is ") as refused:
        rebuild.replay(env16.ctx, Replay(("public.item",), upto=str(Lsn(first)), shadow="gone"), env16.submit)
    assert str(max(each.lsn for each in env16.ctx.ledger.loads.copies(env16.name))) in str(refused.value)


@pytest.mark.slow
def test_during_a_replay_another_one_and_a_resync_of_the_table_are_refused_by_name(env16: PipelineEnv) -> None:
    begin(env16)
    item, refused = Replay(("public.item",)), []

    def submit(job: Any) -> None:
        for work in (
            lambda: rebuild.replay(env16.ctx, item, env16.submit),
            lambda: rebuild.replay(env16.ctx, Replay(("public.item",), shadow="s"), env16.submit),
            lambda: rebuild.resync(env16.ctx, ["public.item"], env16.submit),
            lambda: rebuild.abandon(env16.ctx, ["public.item"]),
        ):
            with pytest.raises(LedgerError, match=r"work-under-way.*rebuild of public.item.*held by") as caught:
                work()
            refused.append(caught.value)
        raise RuntimeError("Spark died")

    with pytest.raises(RuntimeError):
        rebuild.replay(env16.ctx, item, submit)

    assert len(refused) == 4
    with pytest.raises(LedgerError, match=r"rebuild-open.*its replay .* is building since .*run replay again.*abandon"):
        rebuild.resync(env16.ctx, ["public.item"], env16.submit)
    ids = rebuild.resync(env16.ctx, ["public.visit"], env16.submit)  # another table's is its own affair
    ids += rebuild.replay(env16.ctx, item, env16.submit)
    assert rebuild.switch(env16.ctx, ids, env16.submit)
    assert env16.unlike() == []
    follows(env16)


def at_source(env: PipelineEnv) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a reader of the lake would see if it were the source; the mirror has `_misfits`, too."""
    names = ("item", "visit", "Order Line")
    return {name: sorted((*row, None) for row in env.sql(f'select * from "{name}"')) for name in names}
