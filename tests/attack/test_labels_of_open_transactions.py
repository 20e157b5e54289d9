"""A label of an enum is renamed while a transaction that wrote it is open: the stream brings the old label after the answer to the rename."""

from contextlib import suppress

import pytest

from penstock.errors import SourceError
from tests.pipeline_env import PipelineEnv

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = """
create type mood as enum ('calm', 'keen');
create table t (id int primary key, mood mood, moods mood[], v text);
insert into t select i, 'calm', '{calm,keen}', 'v' from generate_series(1, 20) i;
"""
RENAMED = "alter type mood rename value 'calm' to 'quiet'"


@pytest.mark.parametrize("trigger", [False, True], ids=["without the trigger", "with the trigger"])
@pytest.mark.parametrize("answer", ["wake", "resync"])
def test_rows_that_were_written_under_the_old_label_are_noticed(
    env16: PipelineEnv, answer: str, *, trigger: bool
) -> None:
    env16.settings["source"] = {**env16.settings["source"], "slot_timeout": 2}
    env16.bootstrap(TABLES, trigger=trigger)
    with env16.source.connect() as conn:
        conn.execute(
            "begin; update t set v = 'open' where id = 3; insert into t values (100, 'calm', '{calm}', 'open')"
        )
        env16.land(RENAMED)
        with suppress(SourceError):  # its snapshot waits for the transaction, but not for long
            env16.wake() if answer == "wake" else env16.resync("public.t")
        env16.follow()
        conn.execute("commit")
    env16.follow("insert into t values (101, 'quiet', null, 'later')")
    for _ in range(3):
        env16.wake(woken=False)
        env16.follow()

    assert env16.wrong() == []


def test_rows_that_were_written_under_a_name_that_a_new_label_had_for_a_while_are_noticed(env16: PipelineEnv) -> None:
    env16.bootstrap(TABLES)
    env16.sql("alter type mood add value 'blue'")
    with env16.source.connect() as conn:
        conn.execute(
            "begin; update t set v = 'open' where id = 3; insert into t values (100, 'blue', '{blue}', 'open')"
        )
        env16.sql("alter type mood rename value 'blue' to 'azure'")
        for number in range(3):
            env16.follow(f"insert into t values ({number + 200}, 'azure', null, 'later')")
        conn.execute("commit")
    env16.follow()
    for _ in range(3):
        env16.wake(woken=False)
        env16.follow()

    assert env16.wrong() == []
