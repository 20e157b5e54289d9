"""A slot is dropped only by whom it belongs to: what Penstock did not make it leaves alone, whatever its name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from penstock.errors import LedgerError, SourceError
from penstock.flow.load import bootstrap
from penstock.flow.recover import run as recover
from penstock.flow.recover.teardown import teardown
from stack.servers.postgres import Server
from tests.flow.health.conftest import streaming
from tests.pipeline_env import PipelineEnv, copy_without_spark, wait_for
from tests.scenarios.recovery import consume

TABLE = "create table t (id int primary key); insert into t values (1)"


def begin(env: PipelineEnv, *, adopt: bool = False) -> None:
    env.settings["source"]["adopt"] = adopt
    env.begin(TABLE)


def make_slot(env: PipelineEnv) -> None:
    env.sql(f"select pg_create_logical_replication_slot('{env.ctx.pipeline.slot}', 'pgoutput')")


def drop_slot(env: PipelineEnv) -> None:
    env.sql(f"select pg_drop_replication_slot('{env.ctx.pipeline.slot}')")


def slots(env: PipelineEnv) -> list[tuple[str, str | None]]:
    return env.sql(
        f"select slot_name::text, plugin::text from pg_replication_slots where slot_name = '{env.ctx.pipeline.slot}'"
    )


def recovers_but_for_the_slot(env: PipelineEnv, reason: str) -> None:
    """Assert that recovery names the slot, says why it stays, and waits for a person."""
    there = slots(env)
    outlook = recover.assess(env.ctx)
    assert any(line.startswith("you must run: select pg_drop") and reason in line for line in outlook.lines)
    recover.begin(env.ctx, outlook)
    with pytest.raises(SourceError, match=rf"slot-exists.*{reason}.*pg_drop_replication_slot"):
        recover.new_era(env.ctx)
    assert slots(env) == there
    assert env.ctx.ledger.pipelines.get(env.name).era == 1


def test_an_adopted_slot_is_left_by_teardown_and_by_recovery(env16: PipelineEnv) -> None:
    env16.sql(TABLE)
    env16.sql(f"create publication {env16.ctx.pipeline.publication} for table t")
    make_slot(env16)
    env16.settings["source"]["adopt"] = True
    env16.begin()
    assert env16.ctx.ledger.pipelines.get(env16.name).slot_made is False

    consume(env16)
    recovers_but_for_the_slot(env16, "adopted")
    assert teardown(env16.ctx, dry_run=True) == []

    drop_slot(env16)
    recover.new_era(env16.ctx)
    bootstrap.copy(env16.ctx, copy_without_spark)
    assert env16.ctx.ledger.pipelines.get(env16.name).slot_made is True
    assert teardown(env16.ctx, dry_run=False) == [f"select pg_drop_replication_slot('{env16.ctx.pipeline.slot}')"]
    assert slots(env16) == []


def test_a_slot_that_bootstrap_made_is_dropped_although_the_pipeline_adopts(env16: PipelineEnv) -> None:
    begin(env16, adopt=True)

    assert env16.ctx.ledger.pipelines.get(env16.name).slot_made is True
    teardown(env16.ctx, dry_run=False)
    assert slots(env16) == []


def test_a_pipeline_that_was_torn_down_captures_and_merges_nothing_although_its_slot_is_there(
    env16: PipelineEnv,
) -> None:
    begin(env16)
    teardown(env16.ctx, dry_run=False)
    make_slot(env16)
    env16.sql("insert into t values (2)")

    for verb in (env16.capture, env16.merge):
        with pytest.raises(LedgerError, match=r"not-bootstrapped.*torn_down"):
            verb()
    assert env16.ctx.ledger.windows.all(env16.name) == []


def test_a_slot_of_another_kind_is_not_ours(env16: PipelineEnv) -> None:
    begin(env16)
    drop_slot(env16)
    env16.sql(f"select pg_create_physical_replication_slot('{env16.ctx.pipeline.slot}')")

    recovers_but_for_the_slot(env16, "a physical slot")
    teardown(env16.ctx, dry_run=False)
    assert slots(env16) == [(env16.ctx.pipeline.slot, None)]
    drop_slot(env16)


def test_a_slot_of_the_same_name_on_another_server_is_not_ours(env16: PipelineEnv, postgres15: Server) -> None:
    begin(env16)
    name = env16.source.name
    with postgres15.temporary_database(name) as elsewhere:
        ours, env16.source = env16.source, elsewhere
        env16.sql(TABLE)
        make_slot(env16)

        recovers_but_for_the_slot(env16, "another one than that on which")
        assert teardown(env16.ctx, dry_run=True) == []
        assert slots(env16) == [(env16.ctx.pipeline.slot, "pgoutput")]
        env16.source = ours


def test_a_slot_that_another_session_reads_is_not_dropped(env16: PipelineEnv) -> None:
    begin(env16)
    consume(env16)
    recover.begin(env16.ctx, recover.assess(env16.ctx))

    with reading(env16):
        for call in (lambda: recover.new_era(env16.ctx), lambda: teardown(env16.ctx, dry_run=False)):
            with pytest.raises(SourceError, match="slot-in-use"):
                call()
        assert len(slots(env16)) == 1
    recover.new_era(env16.ctx)
    assert slots(env16) == []


@contextmanager
def reading(env: PipelineEnv) -> Iterator[None]:
    """Hold the slot as a consumer of the replication protocol does."""
    name = env.ctx.pipeline
    active = f"select active from pg_replication_slots where slot_name = '{name.slot}'"
    with env.source.connect() as watching:
        with closing(streaming(env.source, name.slot, name.publication)):
            wait_for(watching, active)
            yield
        wait_for(watching, f"select not ({active})")


def test_a_pipeline_that_never_made_a_slot_drops_none(env16: PipelineEnv) -> None:
    env16.sql(TABLE)
    make_slot(env16)
    with pytest.raises(LedgerError, match="ledger-not-migrated"):
        teardown(env16.ctx, dry_run=False)

    bootstrap.prepare(env16.ctx)
    teardown(env16.ctx, dry_run=False)
    assert len(slots(env16)) == 1


def test_a_pipeline_file_that_names_another_slot_by_now_recovers_nothing(env16: PipelineEnv) -> None:
    begin(env16)
    drop_slot(env16)
    recover.begin(env16.ctx, recover.assess(env16.ctx))

    env16.settings["source"]["slot"] = "somebody_elses"
    with pytest.raises(Exception, match=r"config-invalid.*to keep its slot"):
        recover.new_era(env16.ctx)
    assert env16.ctx.ledger.pipelines.get(env16.name).era == 1
