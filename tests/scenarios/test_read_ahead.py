"""A backlog whose windows are read ahead, from a copy of the slot, is landed as the slot itself would give it."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.config.model import Capture
from penstock.lsn import Lsn
from penstock.source import peek, read_ahead, session, slot
from penstock.wire.batch import StreamDigest
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.waiting import at_work

CHANGES = """
insert into t select n, md5(n::text), repeat(md5(n::text), 200) from generate_series({0} * 1000 + 1, {0} * 1000 + 300) n;
update t set name = name || '+' where id % 7 = {0} % 7;
update t set id = id + 1000000 where id = {0} * 1000 + 1;
delete from t where id % 11 = {0} % 11
"""


def begin(env: PipelineEnv) -> None:
    env.begin(
        "create table t (id int primary key, name text, body text); alter table t alter body set storage external"
    )
    env.settings["capture"] = {"max_wal_bytes": "1MiB"}


def backlog(env: PipelineEnv, rounds: int) -> None:
    for number in range(rounds):
        for statement in CHANGES.format(number).split(";"):
            env.sql(statement)
    env.sql("checkpoint")
    env.sql("insert into t values (-1, 'last')")


def witness(env: PipelineEnv) -> str:
    """Keep a copy of the slot as it is now."""
    name = f"{env.ctx.pipeline.slot}_witness"
    env.sql(f"select pg_copy_logical_replication_slot('{env.ctx.pipeline.slot}', '{name}')")
    return name


def unlike(env: PipelineEnv, name: str) -> list[str]:
    """Name the windows that the witness gives otherwise, and drop it."""
    found = []
    with session.connect(env.ctx.source, what="witness") as conn:
        for window in env.ctx.ledger.windows.all(env.name):
            seen = StreamDigest()
            publication = env.ctx.pipeline.publication
            again = peek.peek(env.ctx.source, peek.Request(name, publication, window.upto_lsn), Capture())
            if (sum(len(batch) for batch in seen.passing(again)), seen.text("any")) != (window.messages, window.digest):
                found.append(f"{window.from_lsn}-{window.upto_lsn}")
            slot.advance(conn, name, window.upto_lsn)
        slot.drop(conn, name)
    return found


def test_a_window_that_was_read_ahead_holds_what_the_slot_itself_gives(env: PipelineEnv) -> None:
    begin(env)
    beside = witness(env)
    backlog(env, 8)

    report = env.capture()

    assert sum(window.ahead for window in report.windows) >= 3
    assert landed(env, "t", "id") == at_source(env, "t", "id")
    assert unlike(env, beside) == []
    assert env.sql("select slot_name from pg_replication_slots where temporary") == []


@pytest.mark.slow
def test_a_backlog_is_caught_up_though_the_source_is_written_to_all_the_time(env16: PipelineEnv) -> None:
    begin(env16)
    env16.sql(
        "do $$ begin for n in 1..1500 loop insert into t select n, 'x', repeat(md5(n::text), 100); commit; end loop; end $$"
    )
    env16.settings["capture"] |= {"time_budget": "1m"}

    def write(stopped: Callable[[float], bool]) -> None:
        with env16.source.connect() as connection:
            connection.autocommit = True
            connection.execute("set synchronous_commit = on")
            while not stopped(0.02):
                connection.execute("update t set name = name || '.' where id = 1")

    with at_work(write):
        report = env16.capture()

    assert report.caught_up, f"{len(report.windows)} windows"
    assert any(window.ahead for window in report.windows)


@pytest.mark.slow
def test_messages_that_are_large_by_themselves_are_those_of_the_window_that_was_read_ahead(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peek, "LARGE", 4096)
    begin(env16)
    beside = witness(env16)
    env16.each(
        range(6),
        "insert into t select 50000 + 6 * {t} + n, 'large', repeat('{t}', 1 << 18) from generate_series(1, 6) n",
    )
    backlog(env16, 2)

    report = env16.capture()

    assert sum(window.ahead for window in report.windows) >= 3
    assert landed(env16, "t", "id") == at_source(env16, "t", "id")
    assert unlike(env16, beside) == []


@pytest.mark.slow
@pytest.mark.parametrize("why", ["slots are scarce", "it is off", "the copy fails"])
def test_without_a_copy_of_the_slot_every_window_is_read_in_turn(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    begin(env16)
    if why == "slots are scarce":
        monkeypatch.setattr(read_ahead, "SPARE_SLOTS", 1 << 20)
    elif why == "it is off":
        env16.settings["capture"]["read_ahead"] = False
    else:
        monkeypatch.setattr(read_ahead, "_copy", refuse)
    backlog(env16, 4)

    report = env16.capture()

    assert len(report.windows) > 2
    assert not any(window.ahead for window in report.windows)
    assert [("not read ahead" in line) for line in env16.lines].count(True) == (why == "the copy fails")
    assert landed(env16, "t", "id") == at_source(env16, "t", "id")


def refuse(*_: object) -> None:
    raise RuntimeError("no copy of a slot here")


@pytest.mark.slow
def test_what_was_read_ahead_is_forgotten_where_the_ledger_plans_another_window(env16: PipelineEnv) -> None:
    begin(env16)
    backlog(env16, 6)
    position = env16.ctx.ledger.pipelines.get(env16.name).position
    assert position is not None
    barrier = Lsn(position + (1 << 20) + (1 << 19))
    env16.ledger.execute(
        "insert into penstock.mark (pipeline, era, lsn, reason) values (%s, 1, %s, 'test')",
        env16.name,
        str(barrier),
    )

    report = env16.capture()

    assert barrier in [window.upto_lsn for window in report.windows]
    assert landed(env16, "t", "id") == at_source(env16, "t", "id")


def test_a_large_message_is_not_asked_for_before_the_slot_stands_where_the_window_begins(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peek, "LARGE", 4096)
    begin(env16)
    ends = []
    for letter in "ab":
        env16.sql(f"insert into t values ({len(ends)}, repeat('{letter}', 10000))")
        ((text,),) = env16.sql("select pg_current_wal_flush_lsn()::text")
        ends.append(Lsn.parse(text))
    name, publication = env16.ctx.pipeline.slot, env16.ctx.pipeline.publication
    request = peek.Request(name, publication, ends[1])
    stood, large = list[Lsn | None](), peek.large

    def noted(*asked: Any) -> Iterator[pa.BinaryArray]:
        with session.connect(env16.ctx.source, what="test") as conn:
            stood.append(slot.read_slot(conn, name).confirmed)
        yield from large(*asked)

    monkeypatch.setattr(peek, "large", noted)
    reading = read_ahead.ReadAhead(env16.ctx.source, ends[0], request, Capture())
    reading.start()
    reading._ready.wait()
    with session.connect(env16.ctx.source, what="test") as conn:
        slot.advance(conn, name, ends[0])
    ahead = reading.messages()
    assert ahead is not None
    found = [message for batch in ahead for message in batch.to_pylist()]
    in_turn = peek.peek(env16.ctx.source, request, Capture())

    assert stood[0] == ends[0], "it was read from the place before"
    assert found == [message for batch in in_turn for message in batch.to_pylist()]
    assert [b"bbbb" in message for message in found] == [False, False, True, False]
