"""A table is copied again while everything else continues; afterwards source and lake are equal."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import ConfigError, LedgerError, PenstockError, SourceError
from penstock.flow import status
from penstock.flow.rebuild import run as rebuild
from penstock.flow.rebuild.run import Replay
from penstock.flow.spark_job import SparkJob
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.conftest import HASTY, LakeCatalog, NewServer
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import AFTER, LOST, SHOP, equal, flush, follows, shown, traces

pytestmark = pytest.mark.spark


def test_a_table_is_copied_anew_while_others_go_on_and_the_old_one_stays_readable(world: PipelineEnv) -> None:
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
    assert {each.state for each in world.ctx.ledger.rebuilds.all(world.name, states=None)} == {"done"}
    assert world.ctx.ledger.rebuilds.all(world.name) == []


@pytest.mark.slow
def test_a_paused_table_comes_back_with_the_columns_that_the_source_has_now(world16: PipelineEnv) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    world16.sql("update item set name = 'the old shape' where id < 5; insert into visit values ('the old shape', 1)")
    world16.sql("alter table item drop price, alter name type bytea using name::bytea; alter table visit rename n to m")
    world16.sql("insert into item values (700, 'x'); delete from visit where m = 2")
    flush(world16)
    world16.capture()
    world16.merge()
    assert states(world16) == {"item": "paused", "visit": "paused", "Order Line": "ready"}
    before = shown(world16)

    ids = rebuild.resync(world16.ctx, ["public.item", "public.visit"], world16.submit)

    assert shown(world16) == before, "the old table stays readable"
    assert states(world16)["item"] == "paused"
    assert rebuild.switch(world16.ctx, ids, world16.submit), "which captures as far as the copy's snapshot first"
    assert set(states(world16).values()) == {"ready"}
    equal(world16)
    assert kept(world16, ids, "item") == before["item"], "the old table stays, under another name"
    world16.sql("insert into item values (701, 'y'); delete from visit where m = 3")
    flush(world16)
    world16.capture()
    world16.merge()
    equal(world16)


@pytest.mark.slow
def test_a_table_that_somebody_else_wrote_to_comes_back(world16: PipelineEnv) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    assert world16.spark is not None
    world16.spark.sql(f"delete from lake.{world16.name}.public.item where id < 10")
    world16.spark.sql(f"drop table lake.{world16.name}.public.visit")
    world16.sql("update item set name = 'x'; insert into visit values ('x', 1)")
    flush(world16)
    world16.capture()
    world16.merge()
    assert states(world16) == {"item": "paused", "visit": "paused", "Order Line": "ready"}

    ids = rebuild.resync(world16.ctx, ["public.visit", "public.item"], world16.submit)

    assert rebuild.switch(world16.ctx, ids, world16.submit)
    equal(world16)
    follows(world16)


@pytest.mark.slow
def test_a_table_that_joined_the_publication_is_copied_with_the_new_ones(world16: PipelineEnv) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    publication = world16.ctx.pipeline.publication
    world16.sql("create table late (id int primary key); insert into late select generate_series(1, 50)")
    world16.sql(f"alter publication {publication} add table late")
    world16.sql("delete from late where id < 10")
    flush(world16)
    world16.capture()
    (late,) = (table for table in world16.ctx.ledger.tables.all(world16.name) if table.name == "late")
    if late.state == "paused":
        world16.ctx.ledger.tables.resume(world16.name, late.oid)
    assert states(world16)["late"] == "new"

    ids = rebuild.resync(world16.ctx, None, world16.submit)

    assert len(ids) == 1
    assert states(world16)["late"] == "new", "it has nothing to show before the cut"
    assert rebuild.switch(world16.ctx, ids, world16.submit)
    assert sorted(world16.lake_rows("late", "id")) == [(n,) for n in range(10, 51)]
    equal(world16)
    assert rebuild.resync(world16.ctx, None, world16.submit) == [], "nothing is new any more"


@pytest.mark.slow
def test_a_table_that_is_rewritten_or_grows_while_it_is_copied_is_right_all_the_same(world16: PipelineEnv) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    done = []

    def submit(job: SparkJob) -> None:
        if job.application.stem == "copy_tables" and not done:
            done.append(True)
            world16.sql("truncate visit; insert into visit values ('after', 1)")
            world16.sql("vacuum full item")
            world16.sql("alter table item add column colour text default 'red'")
            world16.sql("update item set colour = 'blue' where id = 7")
            flush(world16)
        world16.submit(job)

    ids = rebuild.resync(world16.ctx, ["public.item", "public.visit"], submit)

    assert rebuild.switch(world16.ctx, ids, world16.submit)
    equal(world16)
    assert {row[0] for row in world16.lake_rows("item", "colour")} == {"red", "blue"}
    assert any("[table-rewritten]" in line for line in world16.lines)
    follows(world16)


@pytest.mark.slow
def test_wal_is_freed_while_a_copy_is_under_way(world16: PipelineEnv) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    slot = world16.ctx.pipeline.slot
    kept_back = []

    def submit(job: SparkJob) -> None:
        for _ in range(3):
            world16.sql("update item set name = repeat('w', 200000); select pg_switch_wal(); checkpoint")
            flush(world16)
            world16.capture()
            retained = world16.sql(
                "select pg_current_wal_flush_lsn() - restart_lsn, restart_lsn::text from pg_replication_slots "
                f"where slot_name = '{slot}'"
            )
            kept_back.append(retained[0])
        world16.submit(job)

    rebuild.resync(world16.ctx, ["public.visit"], submit)

    assert len({restart for _, restart in kept_back[:3]}) == 3, "the slot's restart position moves on"


@pytest.mark.slow
def test_a_table_is_switched_though_its_source_stands_still(
    new_server: NewServer,
    binaries16: Binaries,
    postgres16: Server,
    lake: LakeCatalog,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = new_server(binaries16, HASTY)
    with postgres16.temporary_database("ledger_of_a_still_source") as ledger:
        world = PipelineEnv(Database(server, "postgres"), ledger, tmp_path / "landing", "still", lake=lake, spark=spark)
        world.sql(SHOP)
        world.bootstrap()
        follows(world)
        with stopped(world, "background writer"):
            world.sql("select pg_switch_wal()")  # as archive_timeout does where nobody writes
            ids = rebuild.resync(world.ctx, ["public.item"], world.submit)
            assert rebuild.switch(world.ctx, ids, world.submit)
            newest = max(world.ctx.ledger.tables.copies(world.name), key=lambda each: each.started_at)
            assert newest.lsn % (16 << 20) == 0, "it stood still at the begin of a segment"
        equal(world)

        monkeypatch.setattr(rebuild, "_IDLE_SECONDS", 1.0)
        with stopped(world, "walwriter", "background writer"):
            world.sql("set synchronous_commit = off; update item set name = 'committed and not flushed'")
            before = shown(world)
            ids = rebuild.resync(world.ctx, ["public.item"], world.submit)
            assert not rebuild.switch(world.ctx, ids, world.submit), "the stream has not come so far, nor will it soon"
            assert shown(world) == before
        flush(world)
        assert rebuild.switch(world.ctx, ids, world.submit)
        equal(world)
        follows(world)
    server.remove()


@contextmanager
def stopped(world: PipelineEnv, *kinds: str) -> Iterator[None]:
    """Let processes of the source's server do nothing until the block ends."""
    found = world.source.execute("select pid from pg_stat_activity where backend_type = any(%s)", list(kinds))
    assert len(found) == len(kinds)
    for (pid,) in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for (pid,) in found:
            os.kill(pid, signal.SIGCONT)


def test_two_at_once_are_told_apart_by_a_clear_message(world16: PipelineEnv) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    refused = []

    def submit(job: SparkJob) -> None:
        with pytest.raises(LedgerError, match=r"work-under-way.*rebuild of public.item") as caught:
            rebuild.resync(world16.ctx, ["public.item"], world16.submit)
        refused.append(caught.value)
        with pytest.raises(LedgerError, match=r"rebuild-open.*its resync"):
            rebuild.replay(world16.ctx, Replay(("public.item",)), world16.submit)
        raise RuntimeError("Spark died")

    with pytest.raises(RuntimeError):
        rebuild.resync(world16.ctx, ["public.item"], submit)

    assert refused
    told = dict(status.lines(status.status(world16.ctx)))
    assert told["resync public.item"].startswith("copying since ")
    with pytest.raises(LedgerError, match=r"rebuild-open.*its resync"):
        rebuild.replay(world16.ctx, Replay(("public.item",)), world16.submit)
    rebuild.abandon(world16.ctx, ["public.item"])
    assert world16.ctx.ledger.rebuilds.all(world16.name) == []
    ids = rebuild.resync(world16.ctx, ["public.item"], world16.submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)
    follows(world16)


def test_bad_input_is_refused_before_any_work(world16: PipelineEnv) -> None:
    world16.sql(SHOP)
    world16.bootstrap()
    ledger = world16.ctx.ledger
    item = next(table for table in ledger.tables.all(world16.name) if table.name == "item")
    before = traces(world16)

    with pytest.raises(ConfigError, match=r"table-unknown.*public.itme; did you mean public.item\?"):
        rebuild.resync(world16.ctx, ["public.itme"], world16.submit)
    for request, said in BAD_REPLAYS:
        with pytest.raises(PenstockError, match=said):
            rebuild.replay(world16.ctx, request, world16.submit)

    assert traces(world16) == before
    ledger.tables.pause(world16.name, item.oid, slug="schema-change", reason="a column was dropped")
    with pytest.raises(LedgerError, match=r"table-not-ready.*paused.*a column was dropped.*resync it instead"):
        rebuild.replay(world16.ctx, Replay(("public.item",)), world16.submit)
    world16.sql(f"alter publication {world16.ctx.pipeline.publication} drop table item")
    with pytest.raises(SourceError, match="table-unpublished"):
        rebuild.resync(world16.ctx, ["public.item"], world16.submit)
    ledger.pipelines.halt(world16.name, slug="slot-ahead", reason="gone")
    with pytest.raises(LedgerError, match="pipeline-halted"):
        rebuild.resync(world16.ctx, ["public.visit"], world16.submit)
    assert ledger.rebuilds.all(world16.name, states=None) == []


ITEM = ("public.item",)
BAD_REPLAYS = [
    (Replay(()), "table-unknown.*at least one"),
    (Replay(("public.itme",)), "table-unknown.*did you mean public.item"),
    (Replay(ITEM, upto="0/10"), "range-invalid.*no `upto` in place"),
    (Replay(ITEM, shadow="s", upto="FFFF/0"), "range-invalid.*everything is landed through"),
    (Replay(ITEM, shadow="s", upto="2999-01-01"), "range-invalid.*past of the landing zone"),
    (Replay(ITEM, shadow="s", upto="soon"), "range-invalid.*16/B374D848"),
    (Replay(ITEM, shadow="s", upto="0/10"), "range-unavailable.*available is "),
    (Replay(ITEM, from_="0/10"), "range-unavailable.*available is "),
    (Replay(ITEM, shadow="s", from_="0/20", upto="0/10"), "range-invalid.*`from` before `upto`"),
    (Replay(ITEM, shadow="a b"), "config-invalid.*suffix"),
    (Replay(ITEM, shadow="changelog"), "config-invalid.*suffix"),
]


def states(world: PipelineEnv) -> dict[str, str]:
    return {table.name: table.state for table in world.ctx.ledger.tables.all(world.name)}


def kept(world: PipelineEnv, ids: list[str], table: str) -> list[tuple[object, ...]]:
    """Return the rows of the table that was replaced."""
    assert world.spark is not None
    rebuilds = world.ctx.ledger.rebuilds.all(world.name, states=None)
    (which,) = (each.id for each in rebuilds if each.name == table and each.id in ids)
    found = world.spark.sql(f"select * from lake.{world.name}._penstock_old_{which}.public.{table}")
    return sorted(tuple(row) for row in found.collect())
