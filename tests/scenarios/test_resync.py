"""A table is copied again while everything else continues; afterwards source and lake are equal."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.errors import ConfigError, LedgerError, PenstockError, SourceError, Trouble
from penstock.flow import status
from penstock.flow.load import run as rebuild
from penstock.flow.load.run import Replay
from penstock.flow.spark_job import SparkJob
from penstock.source.session import SourceSession
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database
from tests.conftest import HASTY, NewServer
from tests.env_fixtures import Around
from tests.pipeline_env import PipelineEnv, copy_without_spark
from tests.scenarios.recovery import AFTER, LOST, SHOP, follows, shown, traces

pytestmark = pytest.mark.spark


def test_a_table_is_copied_again_while_others_continue_and_the_old_one_stays_readable(env: PipelineEnv) -> None:
    env.bootstrap(SHOP)
    before = shown(env)
    seen = []

    def submit(job: SparkJob) -> None:
        env.flush(AFTER)
        env.submit(job)
        env.land(LOST if not seen else AFTER)
        seen.append(job.name)

    ids = rebuild.resync(env.ctx, ["public.item", "public.visit"], submit)

    assert shown(env) == before
    assert len(seen) == 2
    assert rebuild.switch(env.ctx, ids, env.submit)
    assert env.unlike() == []
    assert {row[0] for row in env.lake_rows("item")}.isdisjoint({4, 5, 6})
    follows(env)
    assert {each.state for each in env.ctx.ledger.loads.builds(env.name, states=None)} == {"done"}
    assert env.ctx.ledger.loads.builds(env.name) == []


@pytest.mark.slow
def test_a_paused_table_comes_back_with_the_columns_that_the_source_has_now(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    env16.sql("update item set name = 'the old shape' where id < 5; insert into visit values ('the old shape', 1)")
    env16.sql("alter table item drop price, alter name type bytea using name::bytea; alter table visit rename n to m")
    env16.follow("insert into item values (700, 'x'); delete from visit where m = 2")
    assert states(env16) == {"item": "paused", "visit": "ready", "Order Line": "ready"}
    before = shown(env16)

    ids = rebuild.resync(env16.ctx, ["public.item", "public.visit"], env16.submit)

    assert shown(env16) == before, "the old table stays readable"
    assert states(env16)["item"] == "paused"
    assert rebuild.switch(env16.ctx, ids, env16.submit), "which captures as far as the copy's snapshot first"
    assert set(states(env16).values()) == {"ready"}
    assert env16.unlike() == []
    assert kept(env16, ids, "item") == before["item"], "the old table stays, under another name"
    env16.follow("insert into item values (701, 'y'); delete from visit where m = 3")
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_table_that_another_writer_wrote_to_comes_back(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    env16.spark.sql(f"delete from lake.{env16.name}.public.item where id < 10")
    env16.spark.sql(f"drop table lake.{env16.name}.public.visit")
    env16.follow("update item set name = 'x'; insert into visit values ('x', 1)")
    assert states(env16) == {"item": "paused", "visit": "paused", "Order Line": "ready"}

    ids = rebuild.resync(env16.ctx, ["public.visit", "public.item"], env16.submit)

    assert rebuild.switch(env16.ctx, ids, env16.submit)
    assert env16.unlike() == []
    follows(env16)


@pytest.mark.slow
def test_a_table_that_joined_the_publication_is_copied_with_the_new_ones(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    publication = env16.ctx.pipeline.publication
    env16.sql("create table late (id int primary key); insert into late select generate_series(1, 50)")
    env16.sql(f"alter publication {publication} add table late")
    env16.land("delete from late where id < 10")
    late = env16.table("late")
    if late.state == "paused":
        env16.ctx.ledger.tables.resume(env16.name, late.oid)
    assert states(env16)["late"] == "new"

    ids = rebuild.resync(env16.ctx, None, env16.submit)

    assert len(ids) == 1
    assert states(env16)["late"] == "new", "it has nothing to show before the cut"
    assert rebuild.switch(env16.ctx, ids, env16.submit)
    assert sorted(env16.lake_rows("late", "id")) == [(n,) for n in range(10, 51)]
    assert env16.unlike() == []
    assert rebuild.resync(env16.ctx, None, env16.submit) == [], "nothing is new any more"


@pytest.mark.slow
def test_a_table_that_is_rewritten_or_grows_while_it_is_copied_is_right_all_the_same(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    done = []

    def submit(job: SparkJob) -> None:
        if job.application.stem == "copy_tables" and not done:
            done.append(True)
            env16.sql("truncate visit; insert into visit values ('after', 1)")
            env16.sql("vacuum full item")
            env16.sql("alter table item add column colour text default 'red'")
            env16.flush("update item set colour = 'blue' where id = 7")
        env16.submit(job)

    ids = rebuild.resync(env16.ctx, ["public.item", "public.visit"], submit)

    assert rebuild.switch(env16.ctx, ids, env16.submit)
    assert env16.unlike() == []
    assert {row[0] for row in env16.lake_rows("item", "colour")} == {"red", "blue"}
    assert any("[table-rewritten]" in line for line in env16.lines)
    follows(env16)


@pytest.mark.slow
def test_wal_is_freed_while_a_copy_is_under_way(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    slot = env16.ctx.pipeline.slot
    kept_back = []

    def submit(job: SparkJob) -> None:
        for _ in range(3):
            env16.land("update item set name = repeat('w', 200000); select pg_switch_wal(); checkpoint")
            retained = env16.sql(
                "select pg_current_wal_flush_lsn() - restart_lsn, restart_lsn::text from pg_replication_slots "
                f"where slot_name = '{slot}'"
            )
            kept_back.append(retained[0])
        env16.submit(job)

    rebuild.resync(env16.ctx, ["public.visit"], submit)

    assert len({restart for _, restart in kept_back[:3]}) == 3, "the slot's restart position moves on"


@pytest.mark.slow
def test_a_table_is_switched_though_its_source_stands_still(
    new_server: NewServer, binaries16: Binaries, around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = new_server(binaries16, HASTY)
    for env in around.env_on(Database(server, "postgres")):
        env.bootstrap(SHOP)
        follows(env)
        with stopped(env, "background writer"):
            env.sql("select pg_switch_wal()")  # as archive_timeout does where no one writes
            ids = rebuild.resync(env.ctx, ["public.item"], env.submit)
            assert rebuild.switch(env.ctx, ids, env.submit)
            newest = max(env.ctx.ledger.loads.copies(env.name), key=lambda each: each.started_at)
            assert newest.lsn % (16 << 20) == 0, "it stood still at the begin of a segment"
        assert env.unlike() == []

        monkeypatch.setattr(rebuild, "_IDLE_SECONDS", 1.0)
        with stopped(env, "walwriter", "background writer"):
            env.sql("set synchronous_commit = off; update item set name = 'committed and not flushed'")
            before = shown(env)
            ids = rebuild.resync(env.ctx, ["public.item"], env.submit)
            assert not rebuild.switch(env.ctx, ids, env.submit), "the stream has not come so far, nor will it soon"
            assert shown(env) == before
        env.flush()
        assert rebuild.switch(env.ctx, ids, env.submit)
        assert env.unlike() == []
        follows(env)
    server.remove()


@contextmanager
def stopped(env: PipelineEnv, *kinds: str) -> Iterator[None]:
    """Let processes of the source's server do nothing until the block ends."""
    found = env.source.execute("select pid from pg_stat_activity where backend_type = any(%s)", list(kinds))
    assert len(found) == len(kinds)
    for (pid,) in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for (pid,) in found:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
def test_two_at_once_are_distinguished_by_a_clear_message(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    refused = []

    def submit(job: SparkJob) -> None:
        with pytest.raises(LedgerError, match=r"work-under-way.*rebuild of public.item") as caught:
            rebuild.resync(env16.ctx, ["public.item"], env16.submit)
        refused.append(caught.value)
        with pytest.raises(LedgerError, match=r"rebuild-open.*its resync"):
            rebuild.replay(env16.ctx, Replay(("public.item",)), env16.submit)
        raise RuntimeError("Spark died")

    with pytest.raises(RuntimeError):
        rebuild.resync(env16.ctx, ["public.item"], submit)

    assert refused
    reported = dict(status.lines(status.status(env16.ctx)))
    assert reported["resync public.item"].startswith("copying since ")
    with pytest.raises(LedgerError, match=r"rebuild-open.*its resync"):
        rebuild.replay(env16.ctx, Replay(("public.item",)), env16.submit)
    rebuild.abandon(env16.ctx, ["public.item"])
    assert env16.ctx.ledger.loads.builds(env16.name) == []
    assert env16.resync("public.item")
    follows(env16)


def test_bad_input_is_refused_before_any_work(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    ledger = env16.ctx.ledger
    item = next(table for table in ledger.tables.all(env16.name) if table.name == "item")
    before = traces(env16)

    with pytest.raises(ConfigError, match=r"table-unknown.*public.itme; did you mean public.item\?"):
        rebuild.resync(env16.ctx, ["public.itme"], env16.submit)
    for request, said in BAD_REPLAYS:
        with pytest.raises(PenstockError, match=said):
            rebuild.replay(env16.ctx, request, env16.submit)

    assert traces(env16) == before
    ledger.tables.stop(env16.name, {item.oid: Trouble.usual("schema-change", "a column was dropped")})
    with pytest.raises(LedgerError, match=r"table-not-ready.*paused.*a column was dropped.*resync it instead"):
        rebuild.replay(env16.ctx, Replay(("public.item",)), env16.submit)
    env16.sql(f"alter publication {env16.ctx.pipeline.publication} drop table item")
    with pytest.raises(SourceError, match="table-unpublished"):
        rebuild.resync(env16.ctx, ["public.item"], env16.submit)
    ledger.pipelines.halt(env16.name, slug="slot-ahead", reason="gone")
    with pytest.raises(LedgerError, match="pipeline-halted"):
        rebuild.resync(env16.ctx, ["public.visit"], env16.submit)
    assert ledger.loads.builds(env16.name, states=None) == []


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


def states(env: PipelineEnv) -> dict[str, str]:
    return {table.name: table.state for table in env.tables}


def kept(env: PipelineEnv, ids: list[str], table: str) -> list[tuple[object, ...]]:
    """Return the rows of the table that was replaced."""
    rebuilds = env.ctx.ledger.loads.builds(env.name, states=None)
    (which,) = (each.id for each in rebuilds if each.name == table and each.id in ids)
    found = env.spark.sql(f"select * from lake.{env.name}._penstock_old_{which}.public.{table}")
    return sorted(tuple(row) for row in found.collect())


def test_a_resync_reads_the_catalog_in_its_snapshot_and_once_after(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = env16
    env.begin("create table first (id int primary key)")
    env.sql("create table t (id int primary key); insert into t values (1); create table u (id int primary key)")
    env.capture()
    statements, records = Counter[str](), SourceSession.records

    def counted(self: SourceSession, record: Any, name: str, **values: Any) -> Any:
        statements[name] += 1
        return records(self, record, name, **values)

    def copied(job: SparkJob) -> None:
        if job.application.stem != "copy_tables":
            raise InterruptedError
        copy_without_spark(job)

    monkeypatch.setattr(SourceSession, "records", counted)
    with pytest.raises(InterruptedError):
        rebuild.resync(env.ctx, ["public.t", "public.u"], copied)

    assert [each.state for each in env.ctx.ledger.loads.builds(env.name)] == ["building", "building"]
    assert {name: count for name, count in statements.items() if name.startswith("catalog/")} == {
        "catalog/relations": 2,
        "catalog/heaps": 2,
        "catalog/columns": 2,
    }
