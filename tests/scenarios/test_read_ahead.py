"""A backlog whose windows are read ahead, from a copy of the slot, is landed as the slot itself would give it."""

from __future__ import annotations

import pytest

from penstock.flow.copy import bootstrap
from penstock.lsn import Lsn
from penstock.source import peek, read_ahead, session, slot
from penstock.wire.digest import StreamDigest
from tests.faults.killed import copy_without_spark
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv

CHANGES = """
insert into t select n, md5(n::text), repeat(md5(n::text), 200) from generate_series({0} * 1000 + 1, {0} * 1000 + 300) n;
update t set name = name || '+' where id % 7 = {0} % 7;
update t set id = id + 1000000 where id = {0} * 1000 + 1;
delete from t where id % 11 = {0} % 11
"""


def begin(env: PipelineEnv) -> None:
    env.sql("create table t (id int primary key, name text, body text); alter table t alter body set storage external")
    bootstrap.prepare(env.ctx)
    bootstrap.copy(env.ctx, copy_without_spark)
    env.settings["capture"] = {"max_wal_bytes": "1MiB"}


def backlog(env: PipelineEnv, rounds: int) -> None:
    for number in range(rounds):
        for statement in CHANGES.format(number).split(";"):
            env.sql(statement)
    env.sql("checkpoint")
    env.sql("insert into t values (-1, 'last')")


def test_a_window_that_was_read_ahead_holds_what_the_slot_itself_gives(landing_env: PipelineEnv) -> None:
    env = landing_env
    begin(env)
    name = env.ctx.pipeline.slot
    env.sql(f"select pg_copy_logical_replication_slot('{name}', '{name}_witness')")
    backlog(env, 8)

    report = env.capture()

    assert sum(window.ahead for window in report.windows) >= 3
    assert landed(env, "t", "id") == at_source(env, "t", "id")
    with session.connect(env.ctx.source, what="witness") as conn:
        for window in env.ctx.ledger.windows.all(env.name):
            seen, limits = StreamDigest(), {"statement_timeout": 60, "work_mem": 64 << 20, "batch_bytes": 1 << 20}
            publication = env.ctx.pipeline.publication
            again = peek.peek(
                env.ctx.source, slot=f"{name}_witness", publication=publication, upto=window.upto_lsn, **limits
            )
            messages = sum(len(batch) for batch in seen.passing(again))
            assert (messages > 0, seen.text("any")) == (window.messages > 0, window.digest)
            slot.advance(conn, f"{name}_witness", window.upto_lsn)
        slot.drop(conn, f"{name}_witness")
    assert env.sql("select slot_name from pg_replication_slots where temporary") == []


def test_a_row_that_is_large_by_itself_is_read_ahead_too(
    landing_env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peek, "LARGE", 4096)
    env = landing_env16
    begin(env)
    backlog(env, 6)

    assert any(window.ahead for window in env.capture().windows)
    assert landed(env, "t", "id") == at_source(env, "t", "id")


@pytest.mark.parametrize("why", ["slots are scarce", "it is off", "the copy fails"])
def test_without_a_copy_of_the_slot_every_window_is_read_in_turn(
    landing_env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    env = landing_env16
    begin(env)
    if why == "slots are scarce":
        monkeypatch.setattr(read_ahead, "SPARE_SLOTS", 1 << 20)
    elif why == "it is off":
        env.settings["capture"]["read_ahead"] = False
    else:
        monkeypatch.setattr(read_ahead, "_copy", refuse)
    backlog(env, 4)

    report = env.capture()

    assert len(report.windows) > 2
    assert not any(window.ahead for window in report.windows)
    assert [("not read ahead" in line) for line in env.lines].count(True) == (why == "the copy fails")
    assert landed(env, "t", "id") == at_source(env, "t", "id")


def refuse(*_: object) -> None:
    raise RuntimeError("no copy of a slot here")


def test_what_was_read_ahead_is_forgotten_where_the_ledger_plans_another_window(landing_env16: PipelineEnv) -> None:
    env = landing_env16
    begin(env)
    backlog(env, 6)
    position = env.ctx.ledger.pipelines.get(env.name).position
    assert position is not None
    barrier = Lsn(position + (1 << 20) + (1 << 19))
    env.ledger.execute(
        "insert into penstock.mark (pipeline, era, lsn, reason) values (%s, 1, %s, 'test')", env.name, str(barrier)
    )

    report = env.capture()

    assert barrier in [window.upto_lsn for window in report.windows]
    assert landed(env, "t", "id") == at_source(env, "t", "id")
