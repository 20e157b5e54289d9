"""A slot is dropped only by whom it belongs to: what Penstock did not make it leaves alone, whatever its name."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.errors import LedgerError, SourceError
from penstock.flow.copy import bootstrap
from penstock.flow.recover import run as recover
from penstock.flow.recover.teardown import teardown
from stack.servers.postgres import Server
from tests.faults.killed import copy_without_spark
from tests.pipeline_env import PipelineEnv, wait_for
from tests.scenarios.recovery import consume

TABLE = "create table t (id int primary key); insert into t values (1)"


def begin(world: PipelineEnv, *, adopt: bool = False) -> None:
    world.settings["source"]["adopt"] = adopt
    world.sql(TABLE)
    bootstrap.prepare(world.ctx)
    bootstrap.copy(world.ctx, copy_without_spark)


def make_slot(world: PipelineEnv) -> None:
    world.sql(f"select pg_create_logical_replication_slot('{world.ctx.pipeline.slot}', 'pgoutput')")


def drop_slot(world: PipelineEnv) -> None:
    world.sql(f"select pg_drop_replication_slot('{world.ctx.pipeline.slot}')")


def slots(world: PipelineEnv) -> list[tuple[str, str | None]]:
    return world.sql(
        f"select slot_name::text, plugin::text from pg_replication_slots where slot_name = '{world.ctx.pipeline.slot}'"
    )


def recovers_but_for_the_slot(world: PipelineEnv, reason: str) -> None:
    """Assert that recovery names the slot, says why it stays, and waits for a person."""
    there = slots(world)
    outlook = recover.look(world.ctx)
    assert any(line.startswith("you must run: select pg_drop") and reason in line for line in outlook.lines)
    recover.begin(world.ctx, outlook)
    with pytest.raises(SourceError, match=rf"slot-exists.*{reason}.*pg_drop_replication_slot"):
        recover.new_era(world.ctx)
    assert slots(world) == there
    assert world.ctx.ledger.pipelines.get(world.name).era == 1


def test_an_adopted_slot_is_left_by_teardown_and_by_recovery(bare16: PipelineEnv) -> None:
    world = bare16
    world.sql(TABLE)
    world.sql(f"create publication {world.ctx.pipeline.publication} for table t")
    make_slot(world)
    world.settings["source"]["adopt"] = True
    bootstrap.prepare(world.ctx)
    bootstrap.copy(world.ctx, copy_without_spark)
    assert world.ctx.ledger.pipelines.get(world.name).slot_made is False

    consume(world)
    recovers_but_for_the_slot(world, "adopted")
    assert teardown(world.ctx, dry_run=True) == []

    drop_slot(world)
    recover.new_era(world.ctx)
    bootstrap.copy(world.ctx, copy_without_spark)
    assert world.ctx.ledger.pipelines.get(world.name).slot_made is True
    assert teardown(world.ctx, dry_run=False) == [f"select pg_drop_replication_slot('{world.ctx.pipeline.slot}')"]
    assert slots(world) == []


def test_a_slot_that_bootstrap_made_is_dropped_although_the_pipeline_adopts(bare16: PipelineEnv) -> None:
    begin(bare16, adopt=True)

    assert bare16.ctx.ledger.pipelines.get(bare16.name).slot_made is True
    teardown(bare16.ctx, dry_run=False)
    assert slots(bare16) == []


def test_a_slot_of_another_kind_is_somebody_elses(bare16: PipelineEnv) -> None:
    begin(bare16)
    drop_slot(bare16)
    bare16.sql(f"select pg_create_physical_replication_slot('{bare16.ctx.pipeline.slot}')")

    recovers_but_for_the_slot(bare16, "a physical slot")
    teardown(bare16.ctx, dry_run=False)
    assert slots(bare16) == [(bare16.ctx.pipeline.slot, None)]
    drop_slot(bare16)


def test_a_slot_of_the_same_name_on_another_server_is_somebody_elses(bare16: PipelineEnv, postgres15: Server) -> None:
    begin(bare16)
    name = bare16.source.name
    with postgres15.temporary_database(name) as elsewhere:
        ours, bare16.source = bare16.source, elsewhere
        bare16.sql(TABLE)
        make_slot(bare16)

        recovers_but_for_the_slot(bare16, "another one than that on which")
        assert teardown(bare16.ctx, dry_run=True) == []
        assert slots(bare16) == [(bare16.ctx.pipeline.slot, "pgoutput")]
        bare16.source = ours


def test_a_slot_that_somebody_reads_is_not_dropped(bare16: PipelineEnv) -> None:
    begin(bare16)
    consume(bare16)
    recover.begin(bare16.ctx, recover.look(bare16.ctx))

    with reading(bare16):
        for call in (lambda: recover.new_era(bare16.ctx), lambda: teardown(bare16.ctx, dry_run=False)):
            with pytest.raises(SourceError, match="slot-in-use"):
                call()
        assert len(slots(bare16)) == 1
    recover.new_era(bare16.ctx)
    assert slots(bare16) == []


@contextmanager
def reading(world: PipelineEnv) -> Iterator[None]:
    """Hold the slot as a consumer of the replication protocol does."""
    name, server = world.ctx.pipeline, world.source.server
    options = ["-o", "proto_version=1", "-o", f"publication_names={name.publication}"]
    command = [
        str(server.binaries.program("pg_recvlogical")),
        "-d",
        world.source.name,
        "--slot",
        name.slot,
        "--start",
        "-f",
        "-",
        *options,
    ]
    environment = server.environment(world.source.name)
    active = f"select active from pg_replication_slots where slot_name = '{name.slot}'"
    with (
        world.source.connect() as watching,
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as reader,
    ):
        wait_for(watching, active)
        yield
        reader.terminate()
        reader.wait()
        wait_for(watching, f"select not ({active})")


def test_a_pipeline_that_never_made_a_slot_drops_none(bare16: PipelineEnv) -> None:
    bare16.sql(TABLE)
    make_slot(bare16)
    with pytest.raises(LedgerError, match="ledger-not-migrated"):
        teardown(bare16.ctx, dry_run=False)

    bootstrap.prepare(bare16.ctx)
    teardown(bare16.ctx, dry_run=False)
    assert len(slots(bare16)) == 1


def test_a_pipeline_file_that_names_another_slot_by_now_recovers_nothing(bare16: PipelineEnv) -> None:
    begin(bare16)
    drop_slot(bare16)
    recover.begin(bare16.ctx, recover.look(bare16.ctx))

    bare16.settings["source"]["slot"] = "somebody_elses"
    with pytest.raises(Exception, match=r"config-invalid.*to keep its slot"):
        recover.new_era(bare16.ctx)
    assert bare16.ctx.ledger.pipelines.get(bare16.name).era == 1
