"""A source that goes back in time on the same timeline, as a restored image of its disk does, and one that only crashed.

Identifier and timeline are the same, and the slot is behind the ledger in both. Only what the WAL says differs.
"""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.errors import SourceError
from penstock.flow.guards import record_errors
from penstock.flow.recover import run as recover
from penstock.flow.recover.resume import resume
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests.conftest import NewServer
from tests.env_fixtures import Around
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def old_times(new_server: NewServer, binaries16: Binaries) -> Server:
    """A server of the module's own that is stopped, copied and taken back."""
    return new_server(binaries16, {"checkpoint_timeout": "1h"})


@pytest.fixture
def env(old_times: Server, around: Around) -> Iterator[PipelineEnv]:
    with old_times.temporary_database(f"back{next(_numbers)}") as source:
        for made in around.env_on(source):
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


def position(env: PipelineEnv) -> str:
    return str(env.ctx.ledger.pipelines.get(env.name).position)


def confirmed(env: PipelineEnv) -> str:
    slot = env.ctx.pipeline.slot
    ((at,),) = env.sql(f"select confirmed_flush_lsn::text from pg_replication_slots where slot_name = '{slot}'")
    return str(at)


def advance(env: PipelineEnv, place: str) -> None:
    """Move the slot by hand, as one may try who wants the pipeline to continue."""
    env.sql(f"select pg_replication_slot_advance('{env.ctx.pipeline.slot}', '{place}')")


def halt(env: PipelineEnv, expected: str) -> None:
    """Capture as a task does, and see the pipeline halted."""
    with pytest.raises(SourceError, match=f"source-changed.*{expected}"), record_errors(env.ctx):
        env.capture()
    assert env.ctx.ledger.pipelines.get(env.name).state == "halted"


def stays_halted(env: PipelineEnv, expected: str) -> None:
    """Try what a person may try: look at a recovery, resume, and capture even where the ledger lets it."""
    assert "resume is enough" not in "\n".join(recover.assess(env.ctx).lines)
    with pytest.raises(SourceError, match=f"source-changed.*{expected}"), record_errors(env.ctx):
        resume(env.ctx)
    env.ctx.ledger.pipelines.resume(env.name)
    halt(env, expected)


@contextmanager
def crashed_after(env: PipelineEnv) -> Iterator[None]:
    """Crash the source after the block, and set the slot back to where it was before: not each crash loses its last moves."""
    slot = env.ctx.pipeline.slot
    env.sql(f"select pg_copy_logical_replication_slot('{slot}', '{slot}_kept')")
    yield
    env.source.server.restart("immediate")
    env.sql(f"select pg_drop_replication_slot('{slot}')")
    env.sql(f"select pg_copy_logical_replication_slot('{slot}_kept', '{slot}')")
    env.sql(f"select pg_drop_replication_slot('{slot}_kept')")
    assert confirmed(env) != position(env)


def write_beyond(env: PipelineEnv, place: str) -> None:
    """Let the source write until its WAL has grown past a place, and its transactions past those that were landed."""
    env.each(range(100, 150), "insert into t values ({t})")
    while env.sql(f"select pg_current_wal_flush_lsn() <= '{place}'::pg_lsn") == [(True,)]:
        env.sql("select pg_switch_wal()")
        env.sql("insert into t select -1 - count(*) from t")


def test_a_source_that_was_restored_and_has_grown_beyond_the_ledger_halts_with_what_differs(env: PipelineEnv) -> None:
    kept = image(env.source.server)
    for number in (2, 3):
        env.land(f"insert into t values ({number})")
    place = position(env)

    take_back(env.source.server, kept)
    write_beyond(env, place)
    before = confirmed(env)

    with pytest.raises(SourceError, match=r"source-changed.*to be the one that was staged.*other changes there"):
        env.capture()
    assert position(env) == place
    assert confirmed(env) == before, "the slot was moved over another history"


@pytest.mark.slow
def test_a_source_with_another_history_stays_halted_wherever_its_slot_is_moved_to(env: PipelineEnv) -> None:
    kept = image(env.source.server)
    for number in (2, 3):
        env.land(f"insert into t values ({number})")
    place = position(env)

    take_back(env.source.server, kept)
    halt(env, "written WAL only up to")
    write_beyond(env, place)
    assert "recovery is the only way on" in "\n".join(recover.assess(env.ctx).lines)
    stays_halted(env, "other changes there")
    advance(env, place)
    stays_halted(env, "another history was found at the source before")

    recover.new_era(env.ctx)
    env.begin()
    env.land("insert into t values (4)")
    assert env.ctx.ledger.pipelines.get(env.name).unproved_from is None


@pytest.mark.slow
def test_a_transaction_that_is_given_out_again_does_not_make_another_history_the_one_that_was_read(
    env: PipelineEnv,
) -> None:
    kept = image(env.source.server)
    env.each(range(2, 40), "insert into t values ({t})")
    env.capture()
    place = position(env)

    take_back(env.source.server, kept)
    env.sql("select pg_switch_wal()")
    advance(env, place)
    halt(env, "not been given out yet")
    env.each(range(100, 150), "insert into t values ({t})")

    stays_halted(env, "another history was found at the source before")
    assert landed(env, "t", "id") != at_source(env, "t", "id"), "the other history is not landed"
    assert position(env) == place


@pytest.mark.slow
def test_a_source_that_is_put_back_as_it_was_is_proved_and_continues(env: PipelineEnv) -> None:
    server = env.source.server
    kept = image(server)
    for number in (2, 3):
        env.land(f"insert into t values ({number})")
    right = server.home / "right"
    server.stop("immediate")  # its slot on disk is where the image has it
    subprocess.run(["cp", "-a", server.data, right], check=True)
    server.start()
    take_back(server, kept)
    halt(env, "written WAL only up to")

    take_back(server, right)
    assert "resume reads the WAL from" in "\n".join(recover.assess(env.ctx).lines)
    resume(env.ctx)

    env.land("insert into t values (4)")
    assert landed(env, "t", "id") == at_source(env, "t", "id")


def test_a_restored_slot_that_was_advanced_by_hand_is_found_out_by_the_transactions_that_were_landed(
    env: PipelineEnv,
) -> None:
    kept = image(env.source.server)
    env.each(range(2, 40), "insert into t values ({t})")
    env.capture()
    place = position(env)

    take_back(env.source.server, kept)
    env.sql("select pg_switch_wal()")
    env.sql(f"select pg_replication_slot_advance('{env.ctx.pipeline.slot}', '{place}')")

    with pytest.raises(SourceError, match=r"source-changed.*transaction \d+.*not been given out yet"):
        env.capture()


@pytest.mark.slow
def test_a_crash_that_took_only_the_slot_back_is_proved_window_by_window_and_continues(env: PipelineEnv) -> None:
    with crashed_after(env):
        for number in (2, 3, 4):
            env.land(f"insert into t values ({number}); update t set id = -id where id = {number}; analyze t")
        env.land("select pg_logical_emit_message(true, 'idle', '')")

    env.land("insert into t values (5)")

    assert len([line for line in env.lines if "behind the ledger: reading" in line]) == 4
    assert landed(env, "t", "id") == at_source(env, "t", "id")


@pytest.mark.slow
def test_a_crash_whose_windows_the_ledger_has_forgotten_cannot_be_proved_and_halts(env: PipelineEnv) -> None:
    with crashed_after(env):
        for number in (2, 3):
            env.land(f"insert into t values ({number})")
    place = position(env)
    back = confirmed(env)
    env.ledger.execute("delete from penstock.window where from_lsn = %s::pg_lsn", back)

    with pytest.raises(SourceError, match=r"source-changed.*the end of a window.*the ledger has from"):
        env.capture()

    advance(env, place)
    with pytest.raises(SourceError, match=r"source-changed.*another history was found"):
        env.capture()


@pytest.mark.slow
def test_windows_are_read_again_as_they_were_read_then_whatever_the_file_says_now(env: PipelineEnv) -> None:
    env.sql("select pg_replication_origin_create('elsewhere')")
    with crashed_after(env):
        env.sql("select pg_replication_origin_session_setup('elsewhere'); insert into t values (2)")
        env.land("insert into t values (3)")

    env.settings["source"]["origin"] = "none"
    env.capture()

    assert env.sql("select pg_replication_origin_drop('elsewhere')")
    assert set(landed(env, "t", "id")) == {"1", "2", "3"}
