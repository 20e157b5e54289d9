"""A transaction that the server cannot decode: it alone is left out, its tables wait for a copy, all others lose nothing."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from penstock.errors import LakeError, LedgerError, SourceError, Trouble
from penstock.flow.capture import skip_transaction
from penstock.flow.capture.skip_transaction import Offender
from penstock.flow.guards import record_errors
from penstock.flow.load import replay_request
from penstock.flow.load import run as rebuild
from penstock.flow.load.replay_request import Replay
from penstock.flow.recover import resume
from penstock.flow.recover import run as recover
from penstock.ledger.records import SkippedRecord
from penstock.lsn import Lsn
from stack.servers.binaries import Binaries
from tests.conftest import HASTY, NewServer
from tests.env_fixtures import Around
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.changelogs import logged, now
from tests.scenarios.members import begin, messages, states

TABLES = """
create table t (id int primary key);
create table big (id int primary key, body bytea);
create table also (id int primary key);
create table other (id int primary key);
alter table big alter body set storage external;
insert into t values (1);
"""


def limited(env: PipelineEnv, limit: str) -> None:
    """Set the server a limit as a row beyond 1GB meets it, but a small one: for what a peek may keep on disk."""
    begin(env, TABLES)
    env.settings["capture"] = {"work_mem": "64KiB"}
    env.sql(f"alter role postgres in database {env.source.name} set temp_file_limit = '{limit}'")


def write(env: PipelineEnv, megabytes: int) -> None:
    """Write before, in and after a transaction with a large row: of its other rows none is left out unsaid."""
    env.sql("insert into t values (2); insert into big values (1, 'small')")
    env.sql("insert into t values (3)")
    env.sql(
        f"begin; truncate also; insert into big values (2, convert_to(repeat('x', {megabytes << 20}), 'UTF8')); commit"
    )
    env.sql("insert into t values (4); insert into other values (1)")
    env.flush("insert into big values (3, 'small'); insert into also values (1)")


def missed(env: PipelineEnv, start: datetime, end: datetime) -> list[SkippedRecord]:
    return list(env.ctx.ledger.changelogs.interval_work(env.name, from_time=start, upto_time=end).missing)


def filled(env: PipelineEnv, start: datetime, end: datetime) -> None:
    """Note an interval as filled, with nothing in it."""
    env.ledger.execute(
        "insert into penstock.changelog_fill (pipeline, from_time, upto_time, era, through_lsn, attempt, rows, tables)"
        " select name, %s, %s, era, position, 'a', 0, '[]' from penstock.pipeline where name = %s",
        start,
        end,
        env.name,
    )


def offender(env: PipelineEnv) -> Offender:
    found = skip_transaction.find_offender(env.ctx)
    assert found is not None
    return found


def test_a_transaction_that_cannot_be_decoded_is_left_out_and_only_its_tables_wait_for_a_copy(
    env16: PipelineEnv,
) -> None:
    limited(env16, "5MB")
    write(env16, 3)
    before = env16.ctx.ledger.pipelines.get(env16.name).position
    with pytest.raises(SourceError, match="decoding-limit"):
        env16.capture()

    found = offender(env16)
    assert [table.name for table in found.tables] == ["also", "big"]
    assert env16.ctx.ledger.pipelines.get(env16.name).position == before, "a look has staged something"
    assert set(states(env16).values()) == {"copied"}

    assert skip_transaction.skip(env16.ctx) == found
    env16.capture()

    assert states(env16) == {"also": "paused", "big": "paused", "other": "copied", "t": "copied"}
    assert landed(env16, "t", "id") == at_source(env16, "t", "id")
    assert landed(env16, "other", "id") == at_source(env16, "other", "id")
    assert {"1", "3"} == set(landed(env16, "big", "id")), "only the one transaction is left out"
    (skipped,) = env16.ctx.ledger.windows.skipped(env16.name)
    assert (skipped.lsn, len(skipped.oids)) == (found.lsn, 2)
    with pytest.raises(LakeError, match=r"transaction-skipped.*only a new copy"):
        resume.resume_table(env16.ctx, "public.big")
    later = dict.fromkeys(skipped.oids, Trouble.usual("divergence", "a pause that comes later hides nothing"))
    env16.ctx.ledger.tables.stop(env16.name, later)
    with pytest.raises(LakeError, match=r"divergence.*only a new copy"):
        resume.resume_table(env16.ctx, "public.big")
    assert skip_transaction.find_offender(env16.ctx) is None


def test_where_no_form_of_it_can_be_decoded_all_tables_wait_for_a_copy(env16: PipelineEnv) -> None:
    limited(env16, "2MB")
    env16.sql("insert into t values (2)")
    env16.sql("insert into t values (3)")
    env16.sql(f"insert into big values (2, convert_to(repeat('x', {4 << 20}), 'UTF8'))")
    env16.flush("insert into t values (4)")

    found = offender(env16)
    assert found.found is None
    skip_transaction.skip(env16.ctx)
    env16.capture()

    assert set(states(env16).values()) == {"paused"}
    assert landed(env16, "t", "id") == at_source(env16, "t", "id")
    (skipped,) = env16.ctx.ledger.windows.skipped(env16.name)
    assert (skipped.lsn, skipped.xid) == (found.lsn, None)


def test_what_was_left_out_is_proved_again_when_the_slot_falls_back(env16: PipelineEnv) -> None:
    limited(env16, "5MB")
    slot = env16.ctx.pipeline.slot
    write(env16, 3)
    env16.sql(f"select pg_copy_logical_replication_slot('{slot}', '{slot}_old')")
    skip_transaction.skip(env16.ctx)
    place = env16.ctx.ledger.pipelines.get(env16.name).position

    # as after a crash: the slot is where it was before
    env16.sql(f"select pg_drop_replication_slot('{slot}')")
    env16.land(
        f"select pg_copy_logical_replication_slot('{slot}_old', '{slot}'), pg_drop_replication_slot('{slot}_old')"
    )

    assert landed(env16, "t", "id") == at_source(env16, "t", "id")
    assert isinstance(place, Lsn)
    assert len([line for line in env16.lines if "behind the ledger: reading" in line]) == 2


def test_where_everything_decodes_nothing_is_left_out(env16: PipelineEnv) -> None:
    begin(env16, TABLES)
    env16.flush("insert into t values (2)")

    assert skip_transaction.find_offender(env16.ctx) is None
    assert skip_transaction.skip(env16.ctx) is None
    assert env16.ctx.ledger.windows.skipped(env16.name) == []


@pytest.mark.slow
def test_a_row_above_the_servers_own_limit_is_left_out_by_its_transaction(env16: PipelineEnv) -> None:
    """540 MiB, whose text in hex is above 1GB: no setting helps here, and the binary form says which table it was."""
    begin(env16, TABLES)
    write(env16, 540)
    with pytest.raises(SourceError, match=r"decoding-limit.*invalid memory alloc request size"):
        env16.capture()

    found = skip_transaction.skip(env16.ctx)
    assert found is not None
    assert [table.name for table in found.tables] == ["also", "big"]
    env16.capture()

    assert states(env16) == {"also": "paused", "big": "paused", "other": "copied", "t": "copied"}
    assert landed(env16, "t", "id") == at_source(env16, "t", "id")
    assert landed(env16, "other", "id") == at_source(env16, "other", "id")


def test_every_interval_that_may_have_the_transaction_knows_of_it_and_no_other(env16: PipelineEnv) -> None:
    limited(env16, "5MB")
    start = now(env16)
    write(env16, 3)
    end = now(env16)
    skip_transaction.skip(env16.ctx)
    env16.capture()

    (missing,) = missed(env16, start, end)
    assert missing.since == missing.until, "its own time is known, for its binary form could be decoded"
    assert missing.since is not None
    assert start < missing.since < end
    assert missed(env16, missing.since, end) == [missing]
    assert missed(env16, start, missing.since) == []
    assert missed(env16, end, end + timedelta(days=1)) == []


def test_where_its_time_is_unknown_every_interval_up_to_the_skip_says_that_it_may_lack_it(env16: PipelineEnv) -> None:
    limited(env16, "2MB")
    before = now(env16)
    env16.land("insert into t values (2)")
    start = now(env16)
    env16.flush(f"insert into big values (2, convert_to(repeat('x', {4 << 20}), 'UTF8'))")
    skip_transaction.skip(env16.ctx)
    end = now(env16)

    (missing,) = missed(env16, start, end)
    assert missing.since is not None
    assert missing.until is not None
    assert before < missing.since < start < missing.until < end
    assert missed(env16, before - timedelta(days=1), before) == [], "all of that time was captured"
    assert missed(env16, end, end + timedelta(days=1)) == []


def test_intervals_that_were_filled_before_the_skip_are_to_be_filled_again(env16: PipelineEnv) -> None:
    limited(env16, "5MB")
    start = now(env16)
    write(env16, 3)
    end = now(env16)
    filled(env16, start, end)
    filled(env16, end, end + timedelta(seconds=1))

    found = skip_transaction.skip(env16.ctx)

    assert found is not None
    (message,) = (each for each in messages(env16, "changes-late") if "was left out" in each)
    assert f"committed at {found.lsn}" in message
    assert "fill it again" in message
    late = [fill.late_rows for fill in reversed(env16.ctx.ledger.changelogs.fills(env16.name))]
    assert late == [4, 0], "three changes before it, and it"


@pytest.mark.slow
@pytest.mark.spark
def test_the_changelogs_of_its_tables_say_in_its_place_that_the_transaction_is_missing(env16: PipelineEnv) -> None:
    env16.settings["changelog"] = {"slack": 0}
    env16.bootstrap(TABLES)
    env16.settings["capture"] = {"work_mem": "64KiB"}
    env16.sql(f"alter role postgres in database {env16.source.name} set temp_file_limit = '5MB'")
    start = now(env16)
    write(env16, 3)
    env16.flush("insert into big values (4, 'small')")
    end = now(env16)
    found = skip_transaction.skip(env16.ctx)
    assert found is not None
    env16.capture()
    env16.land()

    for _ in range(2):  # a second fill replaces it
        assert env16.changelog(start, end).rows == 8, "what is missing is no change"

    for table, ops in {"big": "ISII", "also": "SI", "t": "III", "other": "I"}.items():
        assert [row["op"] for row in logged(env16, table, start, end)] == list(ops), table
    (row,) = (row for row in logged(env16, "big", start, end) if row["op"] == "S")
    assert (row["commit_lsn"], row["era"], row["ordinal"]) == (found.lsn, 1, 0)
    assert row["xid"] == env16.ctx.ledger.windows.skipped(env16.name)[0].xid
    assert (row["new"], row["old"], row["unknown"]) == (None, None, None)
    message = messages(env16, "transaction-skipped")[-1]
    assert f"the transaction that committed at {found.lsn}" in message
    assert "public.also, public.big say so" in message


@pytest.mark.slow
@pytest.mark.spark
def test_a_resync_brings_the_rows_of_the_transaction_and_an_older_copy_is_no_longer_replayed(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(TABLES)
    env16.settings["capture"] = {"work_mem": "64KiB"}
    env16.sql(f"alter role postgres in database {env16.source.name} set temp_file_limit = '5MB'")
    write(env16, 3)
    skip_transaction.skip(env16.ctx)
    env16.capture()
    env16.sql(f"alter role postgres in database {env16.source.name} reset temp_file_limit")
    env16.merge()
    assert states(env16) == {"also": "paused", "big": "paused", "other": "ready", "t": "ready"}

    tables = ["public.also", "public.big"]
    rebuild.switch(env16.ctx, rebuild.resync(env16.ctx, tables, env16.submit), env16.submit)

    assert set(states(env16).values()) == {"ready"}
    assert env16.unlike() == []
    replay_request.sources(env16.ctx, Replay(("public.big",)))
    with pytest.raises(LakeError, match="range-unavailable"):
        replay_request.sources(
            env16.ctx, Replay(("public.big",), from_=str(env16.ctx.ledger.windows.skipped(env16.name)[0].lsn))
        )


@pytest.fixture
def unreadable15(new_server: NewServer, binaries15: Binaries, around: Around) -> Iterator[PipelineEnv]:
    """A pipeline on a server of its own: after the test it may not crash."""
    with new_server(binaries15, HASTY).temporary_database("unreadable") as source:
        yield from around.env_on(source)


@pytest.mark.slow
def test_where_the_server_cannot_read_its_own_wal_recovery_is_allowed_and_ends_it(unreadable15: PipelineEnv) -> None:
    """A stranger's message of almost 1 GiB, which up to 15 the server writes and cannot read."""
    begin(unreadable15, TABLES)
    unreadable15.sql("insert into t values (2)")
    unreadable15.sql(f"create role stranger_{unreadable15.name}")
    with unreadable15.source.connect() as stranger:
        stranger.execute(f"set session authorization stranger_{unreadable15.name}".encode())
        stranger.execute("select pg_logical_emit_message(true, 'x', repeat('x', 1073741800))")
    unreadable15.sql("insert into t values (3)")
    unreadable15.flush()
    with pytest.raises(SourceError, match="decoding-limit"):
        unreadable15.capture()
    assert recover.assess(unreadable15.ctx).slug == "wal-unreadable"

    found = offender(unreadable15)
    assert not found.passable
    assert "cannot read its own WAL" in found.lines()[0]
    with pytest.raises(SourceError, match=r"wal-unreadable.*penstock recover"), record_errors(unreadable15.ctx):
        skip_transaction.skip(unreadable15.ctx)
    assert set(landed(unreadable15, "t", "id")) == {"1", "2"}, "what came before is captured"
    assert set(states(unreadable15).values()) == {"copied"}, "and nothing is paused for nothing"
    with pytest.raises(SourceError, match="wal-unreadable"):
        resume.resume(unreadable15.ctx)

    outlook = recover.assess(unreadable15.ctx)
    assert "broken by [wal-unreadable]" in outlook.lines[0]
    recover.begin(unreadable15.ctx, outlook)
    recover.new_era(unreadable15.ctx)
    unreadable15.begin()
    unreadable15.land("insert into t values (4)")

    assert landed(unreadable15, "t", "id") == at_source(unreadable15, "t", "id")
    unreadable15.sql(f"drop role stranger_{unreadable15.name}")


def test_recovery_is_refused_where_the_slot_can_be_moved_on(env16: PipelineEnv) -> None:
    limited(env16, "2MB")
    env16.flush(f"insert into big values (2, convert_to(repeat('x', {4 << 20}), 'UTF8'))")
    with pytest.raises(SourceError, match="decoding-limit"):
        env16.capture()

    assert offender(env16).passable
    with pytest.raises(LedgerError, match="nothing-to-recover"):
        recover.assess(env16.ctx)
