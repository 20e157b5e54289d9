"""A transaction that the server cannot decode: it alone is left out, its tables wait for a copy, all others lose nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from penstock.errors import LakeError, SourceError
from penstock.flow.capture import skip_transaction
from penstock.flow.capture.skip_transaction import Offender
from penstock.flow.rebuild import replay_request
from penstock.flow.rebuild import run as rebuild
from penstock.flow.rebuild.replay_request import Replay
from penstock.flow.recover import resume
from penstock.ledger.changelogs import MissingRecord
from penstock.lsn import Lsn
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.changelogs import logged, now
from tests.scenarios.members import begin, states, told
from tests.scenarios.recovery import equal, flush

TABLES = """
create table t (id int primary key);
create table big (id int primary key, body bytea);
create table also (id int primary key);
create table other (id int primary key);
alter table big alter body set storage external;
insert into t values (1);
"""


def limited(world: PipelineEnv, limit: str) -> None:
    """Set the server a limit as a row beyond 1GB meets it, but a small one: for what a peek may keep on disk."""
    begin(world, TABLES)
    world.settings["capture"] = {"work_mem": "64KiB"}
    world.sql(f"alter role postgres in database {world.source.name} set temp_file_limit = '{limit}'")


def write(world: PipelineEnv, megabytes: int) -> None:
    """Write before, in and after a transaction with a large row: of its other rows none is left out unsaid."""
    world.sql("insert into t values (2); insert into big values (1, 'small')")
    world.sql("insert into t values (3)")
    world.sql(
        f"begin; truncate also; insert into big values (2, convert_to(repeat('x', {megabytes << 20}), 'UTF8')); commit"
    )
    world.sql("insert into t values (4); insert into other values (1)")
    world.sql("insert into big values (3, 'small'); insert into also values (1)")
    flush(world)


def missed(world: PipelineEnv, start: datetime, end: datetime) -> list[MissingRecord]:
    return list(world.ctx.ledger.changelogs.interval_work(world.name, from_time=start, upto_time=end).missing)


def filled(world: PipelineEnv, start: datetime, end: datetime) -> None:
    """Note an interval as filled, with nothing in it."""
    world.ledger.execute(
        "insert into penstock.changelog_fill (pipeline, from_time, upto_time, era, through_lsn, attempt, rows, tables)"
        " select name, %s, %s, era, position, 'a', 0, '[]' from penstock.pipeline where name = %s",
        start,
        end,
        world.name,
    )


def looked(world: PipelineEnv) -> Offender:
    found = skip_transaction.look(world.ctx)
    assert found is not None
    return found


def test_a_transaction_that_cannot_be_decoded_is_left_out_and_only_its_tables_wait_for_a_copy(
    bare16: PipelineEnv,
) -> None:
    world = bare16
    limited(world, "5MB")
    write(world, 3)
    before = world.ctx.ledger.pipelines.get(world.name).position
    with pytest.raises(SourceError, match="decoding-limit"):
        world.capture()

    found = looked(world)
    assert [table.name for table in found.tables] == ["also", "big"]
    assert world.ctx.ledger.pipelines.get(world.name).position == before, "a look has staged something"
    assert set(states(world).values()) == {"copied"}

    assert skip_transaction.skip(world.ctx) == found
    world.capture()

    assert states(world) == {"also": "paused", "big": "paused", "other": "copied", "t": "copied"}
    assert landed(world, "t", "id") == at_source(world, "t", "id")
    assert landed(world, "other", "id") == at_source(world, "other", "id")
    assert {"1", "3"} == set(landed(world, "big", "id")), "only the one transaction is left out"
    (skipped,) = world.ctx.ledger.skips.all(world.name)
    assert (skipped.lsn, len(skipped.oids)) == (found.lsn, 2)
    with pytest.raises(LakeError, match=r"transaction-skipped.*only a new copy"):
        resume.resume_table(world.ctx, "public.big")
    assert skip_transaction.look(world.ctx) is None


def test_where_no_form_of_it_can_be_decoded_all_tables_wait_for_a_copy(bare16: PipelineEnv) -> None:
    world = bare16
    limited(world, "2MB")
    world.sql("insert into t values (2)")
    world.sql("insert into t values (3)")
    world.sql(f"insert into big values (2, convert_to(repeat('x', {4 << 20}), 'UTF8'))")
    world.sql("insert into t values (4)")
    flush(world)

    found = looked(world)
    assert found.found is None
    skip_transaction.skip(world.ctx)
    world.capture()

    assert set(states(world).values()) == {"paused"}
    assert landed(world, "t", "id") == at_source(world, "t", "id")
    (skipped,) = world.ctx.ledger.skips.all(world.name)
    assert (skipped.lsn, skipped.xid) == (found.lsn, None)


def test_what_was_left_out_is_proved_again_when_the_slot_falls_back(bare16: PipelineEnv) -> None:
    world = bare16
    limited(world, "5MB")
    slot = world.ctx.pipeline.slot
    write(world, 3)
    world.sql(f"select pg_copy_logical_replication_slot('{slot}', '{slot}_old')")
    skip_transaction.skip(world.ctx)
    place = world.ctx.ledger.pipelines.get(world.name).position

    # as after a crash: the slot is where it was before
    world.sql(f"select pg_drop_replication_slot('{slot}')")
    world.sql(
        f"select pg_copy_logical_replication_slot('{slot}_old', '{slot}'), pg_drop_replication_slot('{slot}_old')"
    )
    world.capture()

    assert landed(world, "t", "id") == at_source(world, "t", "id")
    assert isinstance(place, Lsn)
    assert len([line for line in world.lines if "behind the ledger: reading" in line]) == 2


def test_where_everything_decodes_nothing_is_left_out(bare16: PipelineEnv) -> None:
    begin(bare16, TABLES)
    bare16.sql("insert into t values (2)")
    flush(bare16)

    assert skip_transaction.look(bare16.ctx) is None
    assert skip_transaction.skip(bare16.ctx) is None
    assert bare16.ctx.ledger.skips.all(bare16.name) == []


@pytest.mark.slow
def test_a_row_above_the_servers_own_limit_is_left_out_by_its_transaction(bare16: PipelineEnv) -> None:
    """540 MiB, whose text in hex is above 1GB: no setting helps here, and the binary form says which table it was."""
    world = bare16
    begin(world, TABLES)
    write(world, 540)
    with pytest.raises(SourceError, match=r"decoding-limit.*invalid memory alloc request size"):
        world.capture()

    found = skip_transaction.skip(world.ctx)
    assert found is not None
    assert [table.name for table in found.tables] == ["also", "big"]
    world.capture()

    assert states(world) == {"also": "paused", "big": "paused", "other": "copied", "t": "copied"}
    assert landed(world, "t", "id") == at_source(world, "t", "id")
    assert landed(world, "other", "id") == at_source(world, "other", "id")


def test_every_interval_that_may_have_the_transaction_knows_of_it_and_no_other(bare16: PipelineEnv) -> None:
    world = bare16
    limited(world, "5MB")
    start = now(world)
    write(world, 3)
    end = now(world)
    skip_transaction.skip(world.ctx)
    world.capture()

    (missing,) = missed(world, start, end)
    assert missing.since == missing.until, "its own time is known, for its binary form could be decoded"
    assert missing.since is not None
    assert start < missing.since < end
    assert missed(world, missing.since, end) == [missing]
    assert missed(world, start, missing.since) == []
    assert missed(world, end, end + timedelta(days=1)) == []


def test_where_nobody_knows_its_time_every_interval_up_to_the_skip_says_that_it_may_lack_it(
    bare16: PipelineEnv,
) -> None:
    world = bare16
    limited(world, "2MB")
    before = now(world)
    world.sql("insert into t values (2)")
    flush(world)
    world.capture()
    start = now(world)
    world.sql(f"insert into big values (2, convert_to(repeat('x', {4 << 20}), 'UTF8'))")
    flush(world)
    skip_transaction.skip(world.ctx)
    end = now(world)

    (missing,) = missed(world, start, end)
    assert missing.since is not None
    assert missing.until is not None
    assert before < missing.since < start < missing.until < end
    assert missed(world, before - timedelta(days=1), before) == [], "all of that time was captured"
    assert missed(world, end, end + timedelta(days=1)) == []


def test_intervals_that_were_filled_before_the_skip_are_to_be_filled_again(bare16: PipelineEnv) -> None:
    world = bare16
    limited(world, "5MB")
    start = now(world)
    write(world, 3)
    end = now(world)
    filled(world, start, end)
    filled(world, end, end + timedelta(seconds=1))

    found = skip_transaction.skip(world.ctx)

    assert found is not None
    (message,) = (each for each in told(world, "changes-late") if "was left out" in each)
    assert f"committed at {found.lsn}" in message
    assert "fill it again" in message
    late = [fill.late_rows for fill in reversed(world.ctx.ledger.changelogs.fills(world.name))]
    assert late == [4, 0], "three changes before it, and it"


@pytest.mark.spark
def test_the_changelogs_of_its_tables_say_in_its_place_that_the_transaction_is_missing(world16: PipelineEnv) -> None:
    world = world16
    world.settings["changelog"] = {"slack": 0}
    world.sql(TABLES)
    world.bootstrap()
    world.settings["capture"] = {"work_mem": "64KiB"}
    world.sql(f"alter role postgres in database {world.source.name} set temp_file_limit = '5MB'")
    start = now(world)
    write(world, 3)
    world.sql("insert into big values (4, 'small')")
    flush(world)
    end = now(world)
    found = skip_transaction.skip(world.ctx)
    assert found is not None
    world.capture()
    flush(world)
    world.capture()

    for _ in range(2):  # a second fill replaces it
        assert world.changelog(start, end).rows == 8, "what is missing is no change"

    for table, ops in {"big": "ISII", "also": "SI", "t": "III", "other": "I"}.items():
        assert [row["op"] for row in logged(world, table, start, end)] == list(ops), table
    (row,) = (row for row in logged(world, "big", start, end) if row["op"] == "S")
    assert (row["commit_lsn"], row["era"], row["ordinal"]) == (found.lsn, 1, 0)
    assert row["xid"] == world.ctx.ledger.skips.all(world.name)[0].xid
    assert (row["new"], row["old"], row["unknown"]) == (None, None, None)
    message = told(world, "transaction-skipped")[-1]
    assert f"the transaction that committed at {found.lsn}" in message
    assert "public.also, public.big say so" in message


@pytest.mark.slow
@pytest.mark.spark
def test_a_resync_brings_the_rows_of_the_transaction_and_an_older_copy_is_no_longer_replayed(
    world16: PipelineEnv,
) -> None:
    world = world16
    world.sql(TABLES)
    world.bootstrap()
    world.settings["capture"] = {"work_mem": "64KiB"}
    world.sql(f"alter role postgres in database {world.source.name} set temp_file_limit = '5MB'")
    write(world, 3)
    skip_transaction.skip(world.ctx)
    world.capture()
    world.sql(f"alter role postgres in database {world.source.name} reset temp_file_limit")
    world.merge()
    assert states(world) == {"also": "paused", "big": "paused", "other": "ready", "t": "ready"}

    tables = ["public.also", "public.big"]
    rebuild.switch(world.ctx, rebuild.resync(world.ctx, tables, world.submit), world.submit)

    assert set(states(world).values()) == {"ready"}
    equal(world)
    replay_request.sources(world.ctx, Replay(("public.big",)))
    with pytest.raises(LakeError, match="range-unavailable"):
        replay_request.sources(
            world.ctx, Replay(("public.big",), from_=str(world.ctx.ledger.skips.all(world.name)[0].lsn))
        )
