"""Labels and attributes of types are altered while a transaction that wrote them is open: the stream brings its rows as they were."""

from contextlib import suppress
from typing import Any

import pytest

from penstock.errors import SourceError
from penstock.flow.load import waiting
from tests.pipeline_env import PipelineEnv

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = """
create type mood as enum ('calm', 'keen');
create type pair as (a int, b int);
create table t (id int primary key, mood mood, moods mood[], v text, pair pair);
insert into t select i, 'calm', '{calm,keen}', 'v', '(1,2)' from generate_series(1, 20) i;
"""
ALTERED = {
    "label": "alter type mood rename value 'calm' to 'quiet'",
    "attribute": "alter type pair add attribute more int",
}
WRITTEN = "begin; update t set v = 'open' where id = 3; insert into t values (100, 'calm', '{calm}', 'open', '(1,2)')"


@pytest.mark.parametrize("trigger", [False, True], ids=["without the trigger", "with the trigger"])
@pytest.mark.parametrize("answer", ["wake", "resync"])
@pytest.mark.parametrize("what", ALTERED)
def test_what_a_transaction_wrote_before_its_types_were_altered_is_in_the_lake_as_at_the_source(
    env16: PipelineEnv, what: str, answer: str, *, trigger: bool
) -> None:
    env16.settings["source"] = {**env16.settings["source"], "slot_timeout": 2}
    env16.bootstrap(TABLES, trigger=trigger)
    with env16.source.connect() as conn:
        conn.execute(WRITTEN)
        env16.land(ALTERED[what])
        with suppress(SourceError):  # its snapshot waits for the transaction, but not for long
            env16.wake() if answer == "wake" else env16.resync("public.t")
        env16.follow()
        conn.execute("commit")
    env16.follow("insert into t values (101, 'keen', null, 'later')")
    for _ in range(3):
        env16.wake(woken=False)
        env16.follow()

    assert env16.wrong() == []


@pytest.mark.parametrize("what", ALTERED)
def test_what_is_altered_between_the_wait_for_open_transactions_and_the_snapshot_is_waited_for(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    env16.settings["source"] = {**env16.settings["source"], "slot_timeout": 2}
    env16.bootstrap(TABLES)
    wait, left = waiting.hindered, [ALTERED[what]]
    with env16.source.connect() as conn:
        conn.execute(WRITTEN)

        def waited(*arguments: Any, **named: Any) -> Any:
            found = wait(*arguments, **named)
            if left:
                env16.sql(left.pop())
            return found

        monkeypatch.setattr(waiting, "hindered", waited)
        with pytest.raises(SourceError, match=r"table-joining.*public\.t had types that changed"):
            env16.resync("public.t")
        conn.execute("commit")
    assert env16.resync("public.t")
    env16.come_to_rest(3)

    assert env16.wrong() == []


@pytest.mark.parametrize("what", ALTERED)
def test_a_joined_table_whose_types_are_altered_before_its_copy_shows_what_an_open_transaction_wrote(
    env16: PipelineEnv, what: str
) -> None:
    env16.settings["source"] = {**env16.settings["source"], "slot_timeout": 2}
    env16.bootstrap("create table other (id int primary key)")
    env16.land(TABLES)
    with env16.source.connect() as conn:
        conn.execute(WRITTEN)
        env16.land(ALTERED[what])
        with suppress(SourceError):
            env16.resync()
        conn.execute("commit")
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
