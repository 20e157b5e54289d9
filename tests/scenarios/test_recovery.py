"""Recovery of a pipeline that lost its place: meanwhile the lake stays at its last cut, afterwards source = lake."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from penstock.errors import LedgerError, SourceError
from penstock.flow.guards import record_errors
from penstock.flow.load import bootstrap
from penstock.flow.merge import run as merge
from penstock.flow.recover import run as recover
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.conftest import NewServer
from tests.env_fixtures import Around
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import LANDED, LOST, SHOP, consume, follows, recovered, shown, traces

pytestmark = pytest.mark.spark


def begin(env: PipelineEnv) -> None:
    """Bootstrap, and land a window that is not merged."""
    env.bootstrap(SHOP)
    env.land(LANDED)


def drop_slot(env: PipelineEnv) -> None:
    env.sql(f"select pg_drop_replication_slot('{env.ctx.pipeline.slot}')")


def create_slot_again(env: PipelineEnv) -> None:
    drop_slot(env)
    env.flush()
    env.sql(f"select pg_create_logical_replication_slot('{env.ctx.pipeline.slot}', 'pgoutput')")


def drop_publication(env: PipelineEnv) -> None:
    env.sql(f"drop publication {env.ctx.pipeline.publication}")


BREAKAGES: list[tuple[str, Callable[[PipelineEnv], None]]] = [
    ("slot-missing", drop_slot),
    ("slot-ahead", create_slot_again),
    ("slot-ahead", consume),
    ("publication-missing", drop_publication),
]
NAMES = ["dropped", "created again", "consumed", "no publication"]


@pytest.mark.parametrize(
    ("slug", "breakage"),
    [BREAKAGES[0], *(pytest.param(*each, marks=pytest.mark.slow) for each in BREAKAGES[1:])],
    ids=NAMES,
)
@pytest.mark.parametrize("where", ["env16", pytest.param("env15", marks=pytest.mark.slow)])
def test_a_pipeline_whose_slot_is_gone_or_moved_is_recovered(
    request: pytest.FixtureRequest, where: str, slug: str, breakage: Callable[[PipelineEnv], None]
) -> None:
    env: PipelineEnv = request.getfixturevalue(where)
    begin(env)
    env.sql(LOST)
    breakage(env)
    env.flush()
    with pytest.raises(SourceError, match=slug), record_errors(env.ctx):
        env.capture()
    recovers(env, slug)

    assert env.unlike() == []


def recovers(env: PipelineEnv, slug: str) -> None:
    """Dry run, recover and compare, with a look at the lake while the tables are copied."""
    before = traces(env)
    outlook = recover.assess(env.ctx)
    assert outlook.slug == slug
    said = "\n".join(outlook.lines)
    position = env.ctx.ledger.pipelines.get(env.name).position
    assert f"lost to the stream: changes from {position} (20" in said
    assert "landed and safe: 3 changes in 1 window, merged first" in said
    assert "3 tables" in said
    assert traces(env) == before, "a dry run changes nothing"

    old = {}

    def meanwhile() -> None:
        old.update(shown(env))
        assert len(old["item"]) == 30, "what was landed is merged first"
        assert {row[1] for row in old["item"] if row[0] in (1, 3)} == {"landed", "item 3"}
        assert len(old["visit"]) == 20
        assert merge.due(env.ctx) is None, "no cut while tables are copied"

    if any("you must run" in line for line in outlook.lines):
        with pytest.raises(SourceError, match="slot-exists"):
            recovered(env)
        drop_slot(env)  # as the message says: nobody but a person drops a slot that Penstock has not made
    recovered(env, meanwhile)

    assert old
    assert env.unlike() == []
    assert {row[0] for row in env.lake_rows("item")}.isdisjoint({4, 5, 6}), "rows deleted meanwhile are gone"
    follows(env)
    record = env.ctx.ledger.pipelines.get(env.name)
    assert (record.state, record.era, record.slot_made) == ("running", 2, True)
    (gap,) = env.ctx.ledger.pipelines.gaps(env.name)
    assert (gap.era, gap.reason, gap.from_lsn, gap.upto_lsn) == (1, slug, position, record.consistent_point)
    assert gap.from_time is not None
    assert gap.upto_time is not None
    assert gap.from_time < gap.upto_time
    assert {cut.era for cut in env.ctx.ledger.merges.cuts(env.name)} == {1, 2}
    assert kept(env) == old["item"], "the old table stays, under another name, until somebody drops it"
    with pytest.raises(LedgerError, match="nothing-to-recover"):
        recover.assess(env.ctx)


def kept(env: PipelineEnv, era: int = 1) -> list[tuple[object, ...]]:
    name = f"lake.{env.name}._penstock_era{era}.public.item"
    return sorted(tuple(row) for row in env.spark.sql(f"select * from {name}").collect())


@pytest.mark.slow
def test_a_pipeline_is_recovered_again_and_again_and_each_era_is_kept(env16: PipelineEnv) -> None:
    begin(env16)
    drop_slot(env16)
    recovered(env16)
    follows(env16)
    env16.sql(LOST)
    drop_slot(env16)
    recovered(env16)

    follows(env16)
    assert [gap.era for gap in env16.ctx.ledger.pipelines.gaps(env16.name)] == [2, 1]
    assert len(kept(env16, 1)) == 30
    assert len(kept(env16, 2)) == 31


@pytest.mark.slow
def test_a_slot_that_is_lost_while_tables_are_copied_begins_another_era(env16: PipelineEnv) -> None:
    begin(env16)
    drop_slot(env16)
    recover.begin(env16.ctx, recover.assess(env16.ctx))
    recover.new_era(env16.ctx)

    def lose(job: object) -> None:
        drop_slot(env16)
        raise RuntimeError("Spark died, too")

    with pytest.raises(RuntimeError):
        bootstrap.copy(env16.ctx, lose)
    env16.sql(LOST)

    assert recover.assess(env16.ctx).slug == "slot-missing"
    recovered(env16)
    follows(env16)
    assert env16.ctx.ledger.pipelines.get(env16.name).era == 3
    assert len(kept(env16, 1)) == 30


@pytest.mark.slow
def test_columns_that_changed_meanwhile_come_with_the_fresh_tables(env16: PipelineEnv) -> None:
    begin(env16)
    env16.sql("alter table item drop price, alter name type bytea using name::bytea; alter table visit rename n to m")
    drop_slot(env16)

    recovered(env16)

    assert env16.unlike() == []
    env16.follow("insert into item values (700, 'x'); delete from visit where m = 2")
    assert env16.unlike() == []


def test_a_healthy_pipeline_is_not_recovered(env16: PipelineEnv) -> None:
    begin(env16)
    before = traces(env16)

    with pytest.raises(LedgerError, match="nothing-to-recover"):
        recover.assess(env16.ctx)

    assert traces(env16) == before


def test_a_pipeline_that_was_never_bootstrapped_is_not_recovered(env16: PipelineEnv) -> None:
    env16.prepare(SHOP)

    with pytest.raises(LedgerError, match="not-bootstrapped"):
        recover.assess(env16.ctx)


# --- servers of one's own ---------------------------------------------------------------------------------------------


@pytest.fixture
def own(new_server: NewServer, binaries16: Binaries, around: Around) -> Iterator[PipelineEnv]:
    """A pipeline on a server of its own, which the test may break."""
    server = new_server(binaries16, {"checkpoint_timeout": "1h"})
    yield from around.env_on(Database(server, "postgres"))
    server.remove()


@pytest.mark.slow
def test_a_slot_that_the_server_has_invalidated_is_recovered(own: PipelineEnv) -> None:
    begin(own)
    own.sql(LOST)
    own.sql("alter system set max_slot_wal_keep_size = '1MB'")
    own.sql("select pg_reload_conf()")
    for _ in range(3):
        own.sql("select pg_logical_emit_message(false, 'noise', repeat('x', 1000000)), pg_switch_wal()")
    own.sql("checkpoint")
    assert own.sql("select wal_status from pg_replication_slots") == [("lost",)]
    own.sql("alter system reset max_slot_wal_keep_size")
    own.sql("select pg_reload_conf()")

    recovers(own, "slot-lost")


@pytest.mark.slow
def test_a_server_that_was_promoted_is_recovered(own: PipelineEnv) -> None:
    begin(own)
    server: Server = own.source.server
    server.stop()
    signal = server.data / "standby.signal"
    signal.touch()
    server.account.own(signal)
    server.start()
    assert own.sql("select pg_is_in_recovery(), pg_promote()") == [(True, True)]
    own.sql(LOST)

    recovers(own, "source-changed")


@pytest.mark.slow
def test_what_must_be_fixed_first_is_said_and_nothing_is_dropped_before_that(own: PipelineEnv) -> None:
    begin(own)
    consume(own)
    drop_publication(own)
    own.sql("alter table item drop constraint item_pkey")
    outlook = recover.assess(own.ctx)
    assert any("must be fixed first" in line and "public.item" in line for line in outlook.lines)

    recover.begin(own.ctx, outlook)
    with pytest.raises(SourceError, match=r"preflight-failed.*public\.item"):
        recover.new_era(own.ctx)
    assert own.sql("select count(*) from pg_replication_slots") == [(1,)]
    assert own.sql("update item set name = 'x' where id = 7 returning id") == [(7,)], "nothing refuses an update"
    assert own.ctx.ledger.pipelines.get(own.name).era == 1

    own.sql("alter table item add primary key (id)")
    recovered(own)
    follows(own)


@pytest.mark.slow
def test_a_table_that_lost_its_key_is_paused_and_the_others_are_recovered(env16: PipelineEnv) -> None:
    begin(env16)
    env16.sql("alter table visit replica identity nothing")
    consume(env16)
    outlook = recovered(env16)

    assert any("paused, not copied" in line and "public.visit" in line for line in outlook.lines)
    states = {table.qualified: table.state for table in env16.tables}
    assert states == {"public.item": "ready", "public.visit": "paused", "public.Order Line": "ready"}
    env16.follow("insert into item values (700, 'x'); alter table visit replica identity full")
    assert env16.resync("public.visit")
    follows(env16)


@pytest.mark.slow
def test_a_server_that_was_restored_from_a_dump_is_recovered(
    own: PipelineEnv, new_server: NewServer, binaries16: Binaries
) -> None:
    begin(own)
    old: Server = own.source.server
    dump = old.home / "dump.sql"
    old.run_program("pg_dump", "--no-owner", "--file", dump, "postgres")
    old.stop()
    restored = new_server(binaries16, {"checkpoint_timeout": "1h"})
    restored.run_program("psql", "-v", "ON_ERROR_STOP=1", "-q", "-f", dump, "postgres")
    own.source = Database(restored, "postgres")
    own.sql(LOST)

    with pytest.raises(SourceError, match="source-changed"), record_errors(own.ctx):
        own.capture()
    outlook = recover.assess(own.ctx)
    assert "on another server or timeline" in "\n".join(outlook.lines)
    recovers(own, "source-changed")
    restored.remove()


@pytest.mark.slow
def test_a_server_that_was_restored_from_an_older_base_backup_is_recovered(own: PipelineEnv) -> None:
    own.bootstrap(SHOP)
    server: Server = own.source.server
    backup = server.home / "backup"
    server.run_program("pg_basebackup", "-D", backup, "-c", "fast")
    own.sql(LANDED)
    own.land("insert into item select n, 'the restored server never knew', 0 from generate_series(1000, 3000) n")
    server.stop()
    shutil.rmtree(server.data)
    backup.rename(server.data)
    server.start()
    own.sql(LOST)

    outlook = recovered(own)

    assert outlook.slug == "slot-missing", "no backup holds a slot"
    follows(own)
    (gap,) = own.ctx.ledger.pipelines.gaps(own.name)
    assert gap.upto_lsn is not None
    assert gap.upto_lsn < gap.from_lsn, "positions went back, and nothing is mixed"
