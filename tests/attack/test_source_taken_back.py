"""A source that goes back in time on the same timeline, as a restored image of its disk does, and one that only crashed.

Identifier and timeline are the same, and the slot is behind the ledger in both. Only what the WAL says differs.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.errors import SourceError
from penstock.flow.copy import bootstrap
from penstock.flow.errors import record_errors
from penstock.flow.recover import run as recover
from penstock.flow.recover.resume import resume
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog, NewServer
from tests.faults.killed import copy_without_spark
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def old_times(new_server: NewServer, binaries16: Binaries) -> Server:
    """A server of the module's own that is stopped, copied and taken back."""
    return new_server(binaries16, {"checkpoint_timeout": "1h"})


@pytest.fixture
def world(old_times: Server, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[PipelineEnv]:
    number = next(_numbers)
    with (
        old_times.temporary_database(f"back{number}") as source,
        postgres16.temporary_database(f"back_ledger{number}") as ledger,
    ):
        made = PipelineEnv(source, ledger, tmp_path / "landing", f"b{number}", lake)
        made.settings = {"source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"}}
        begin(made)
        made.capture()
        yield made


def image(server: Server) -> Path:
    """Take an image of the server's files, as a snapshot of its disk would be."""
    kept = server.home / "image"
    server.stop()
    subprocess.run(["rm", "-rf", kept], check=True)
    subprocess.run(["cp", "-a", server.data, kept], check=True)
    server.start()
    return kept


def take_back(server: Server, kept: Path) -> None:
    server.stop("immediate")
    subprocess.run(["rm", "-rf", server.data], check=True)
    subprocess.run(["mv", kept, server.data], check=True)
    server.start()


def position(world: PipelineEnv) -> str:
    return str(world.ctx.ledger.pipelines.get(world.name).position)


def confirmed(world: PipelineEnv) -> str:
    slot = world.ctx.pipeline.slot
    ((at,),) = world.sql(f"select confirmed_flush_lsn::text from pg_replication_slots where slot_name = '{slot}'")
    return str(at)


def advance(world: PipelineEnv, place: str) -> None:
    """Move the slot by hand, as one may try who wants the pipeline to continue."""
    world.sql(f"select pg_replication_slot_advance('{world.ctx.pipeline.slot}', '{place}')")


def halt(world: PipelineEnv, expected: str) -> None:
    """Capture as a task does, and see the pipeline halted."""
    with pytest.raises(SourceError, match=f"source-changed.*{expected}"), record_errors(world.ctx):
        world.capture()
    assert world.ctx.ledger.pipelines.get(world.name).state == "halted"


def stays_halted(world: PipelineEnv, expected: str) -> None:
    """Try what a person may try: look at a recovery, resume, and capture even where the ledger lets it."""
    assert "resume is enough" not in "\n".join(recover.look(world.ctx).lines)
    with pytest.raises(SourceError, match=f"source-changed.*{expected}"), record_errors(world.ctx):
        resume(world.ctx)
    world.ctx.ledger.pipelines.resume(world.name)
    halt(world, expected)


@contextmanager
def crashed_after(world: PipelineEnv) -> Iterator[None]:
    """Crash the source after the block, and set the slot back to where it was before: not each crash loses its last moves."""
    slot = world.ctx.pipeline.slot
    world.sql(f"select pg_copy_logical_replication_slot('{slot}', '{slot}_kept')")
    yield
    world.source.server.restart("immediate")
    world.sql(f"select pg_drop_replication_slot('{slot}')")
    world.sql(f"select pg_copy_logical_replication_slot('{slot}_kept', '{slot}')")
    world.sql(f"select pg_drop_replication_slot('{slot}_kept')")
    assert confirmed(world) != position(world)


def write_beyond(world: PipelineEnv, place: str) -> None:
    """Let the source write until its WAL has grown past a place, and its transactions past those that were landed."""
    for number in range(100, 150):
        world.sql(f"insert into t values ({number})")
    while world.sql(f"select pg_current_wal_flush_lsn() <= '{place}'::pg_lsn") == [(True,)]:
        world.sql("select pg_switch_wal()")
        world.sql("insert into t select -1 - count(*) from t")


def test_a_source_that_was_restored_and_has_grown_beyond_the_ledger_halts_with_what_differs(world: PipelineEnv) -> None:
    kept = image(world.source.server)
    for number in (2, 3):
        world.sql(f"insert into t values ({number})")
        world.capture()
    place = position(world)

    take_back(world.source.server, kept)
    write_beyond(world, place)
    before = confirmed(world)

    with pytest.raises(SourceError, match=r"source-changed.*to be the one that was staged.*other changes there"):
        world.capture()
    assert position(world) == place
    assert confirmed(world) == before, "the slot was moved over another history"


def test_a_source_with_another_history_stays_halted_wherever_its_slot_is_moved_to(world: PipelineEnv) -> None:
    kept = image(world.source.server)
    for number in (2, 3):
        world.sql(f"insert into t values ({number})")
        world.capture()
    place = position(world)

    take_back(world.source.server, kept)
    halt(world, "written WAL only up to")
    write_beyond(world, place)
    assert "recovery is the only way on" in "\n".join(recover.look(world.ctx).lines)
    stays_halted(world, "other changes there")
    advance(world, place)
    stays_halted(world, "another history was found at the source before")

    recover.new_era(world.ctx)
    bootstrap.prepare(world.ctx)
    bootstrap.copy(world.ctx, copy_without_spark)
    world.sql("insert into t values (4)")
    world.capture()
    assert world.ctx.ledger.pipelines.get(world.name).doubted_from is None


@pytest.mark.slow
def test_a_transaction_that_is_given_out_again_does_not_make_another_history_the_one_that_was_read(
    world: PipelineEnv,
) -> None:
    kept = image(world.source.server)
    for number in range(2, 40):
        world.sql(f"insert into t values ({number})")
    world.capture()
    place = position(world)

    take_back(world.source.server, kept)
    world.sql("select pg_switch_wal()")
    advance(world, place)
    halt(world, "not been given out yet")
    for number in range(100, 150):
        world.sql(f"insert into t values ({number})")

    stays_halted(world, "another history was found at the source before")
    assert landed(world, "t", "id") != at_source(world, "t", "id"), "the other history is not landed"
    assert position(world) == place


@pytest.mark.slow
def test_a_source_that_is_put_back_as_it_was_is_proved_and_goes_on(world: PipelineEnv) -> None:
    server = world.source.server
    kept = image(server)
    for number in (2, 3):
        world.sql(f"insert into t values ({number})")
        world.capture()
    right = server.home / "right"
    server.stop("immediate")  # its slot on disk is where the image has it
    subprocess.run(["cp", "-a", server.data, right], check=True)
    server.start()
    take_back(server, kept)
    halt(world, "written WAL only up to")

    take_back(server, right)
    assert "resume reads the WAL from" in "\n".join(recover.look(world.ctx).lines)
    resume(world.ctx)

    world.sql("insert into t values (4)")
    world.capture()
    assert landed(world, "t", "id") == at_source(world, "t", "id")


def test_a_restored_slot_that_was_advanced_by_hand_is_found_out_by_the_transactions_that_were_landed(
    world: PipelineEnv,
) -> None:
    kept = image(world.source.server)
    for number in range(2, 40):
        world.sql(f"insert into t values ({number})")
    world.capture()
    place = position(world)

    take_back(world.source.server, kept)
    world.sql("select pg_switch_wal()")
    world.sql(f"select pg_replication_slot_advance('{world.ctx.pipeline.slot}', '{place}')")

    with pytest.raises(SourceError, match=r"source-changed.*transaction \d+.*not been given out yet"):
        world.capture()


def test_a_crash_that_took_only_the_slot_back_is_proved_window_by_window_and_goes_on(world: PipelineEnv) -> None:
    with crashed_after(world):
        for number in (2, 3, 4):
            world.sql(f"insert into t values ({number}); update t set id = -id where id = {number}; analyze t")
            world.capture()
        world.sql("select pg_logical_emit_message(true, 'idle', '')")
        world.capture()

    world.sql("insert into t values (5)")
    world.capture()

    assert len([line for line in world.lines if "behind the ledger: reading" in line]) == 4
    assert landed(world, "t", "id") == at_source(world, "t", "id")


@pytest.mark.slow
def test_a_crash_whose_windows_the_ledger_has_forgotten_cannot_be_proved_and_halts(world: PipelineEnv) -> None:
    with crashed_after(world):
        for number in (2, 3):
            world.sql(f"insert into t values ({number})")
            world.capture()
    place = position(world)
    back = confirmed(world)
    world.ledger.execute("delete from penstock.window where from_lsn = %s::pg_lsn", back)

    with pytest.raises(SourceError, match=r"source-changed.*the end of a window.*the ledger has from"):
        world.capture()

    advance(world, place)
    with pytest.raises(SourceError, match=r"source-changed.*another history was found"):
        world.capture()


@pytest.mark.slow
def test_windows_are_read_again_as_they_were_read_then_whatever_the_file_says_now(world: PipelineEnv) -> None:
    world.sql("select pg_replication_origin_create('elsewhere')")
    with crashed_after(world):
        world.sql("select pg_replication_origin_session_setup('elsewhere'); insert into t values (2)")
        world.sql("insert into t values (3)")
        world.capture()

    world.settings["source"]["origin"] = "none"
    world.capture()

    assert world.sql("select pg_replication_origin_drop('elsewhere')")
    assert set(landed(world, "t", "id")) == {"1", "2", "3"}
