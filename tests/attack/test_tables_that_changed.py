"""A table paused for a change that the stream does not carry is copied again by itself, or waits for a person."""

import pytest

from penstock.config.model import Pipeline
from penstock.errors import Trouble
from penstock.flow import status
from penstock.flow.load import run as rebuild
from penstock.flow.load import waiting
from penstock.flow.load.resync import resync_lines, to_copy
from penstock.ledger.table_records import TableRecord
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, messages, states
from tests.scenarios.recovery import SHOP, follows, shown


def decide(env: PipelineEnv, **policies: str) -> None:
    env.settings["tables"] = {"include": ["public.*"], **policies}


def names(tables: list[TableRecord]) -> list[str]:
    return [table.name for table in tables]


def test_the_pipeline_copies_tables_that_changed_by_itself_unless_its_file_says_otherwise() -> None:
    made = Pipeline.model_validate({"name": "shop", "tables": {"include": ["public.*"]}})

    assert made.tables.on_change == "follow"


def test_a_table_that_changed_is_announced_once_and_not_where_a_person_decides(env16: PipelineEnv) -> None:
    begin(env16, "create table t (id int primary key, v text); create table u (id int primary key)")
    env16.land("alter table t rename v to w")
    assert states(env16) == {"t": "paused", "u": "copied"}

    decide(env16, on_change="pause")
    assert waiting.tables_to_announce(env16.ctx) == []
    assert to_copy(env16.ctx, None) == []
    decide(env16, on_change="resync")
    assert waiting.tables_to_announce(env16.ctx) == ["public.t"]
    env16.capture()
    assert waiting.tables_to_announce(env16.ctx) == [], "once, not with every capture"
    assert names(to_copy(env16.ctx, None)) == ["t"]
    assert messages(env16, "schema-change") == ["column v was renamed to w"]


def test_only_a_pause_that_a_copy_answers_is_answered_by_one(env16: PipelineEnv) -> None:
    begin(env16)
    (table,) = env16.tables
    for slug in ("foreign-commit", "divergence", "misfit-refused"):
        env16.ctx.ledger.tables.stop(env16.name, {table.oid: Trouble.usual(slug, "x")})
        assert waiting.tables_to_announce(env16.ctx) == []
        assert to_copy(env16.ctx, None) == []


def test_a_run_that_was_woken_for_a_table_that_changed_leaves_new_ones_to_a_person(env16: PipelineEnv) -> None:
    begin(env16)
    decide(env16, on_added="wait")
    env16.land("create table u (id int primary key); alter table t add column v int; alter table t rename id to key")
    assert states(env16) == {"t": "paused", "u": "waiting"}

    assert waiting.tables_to_announce(env16.ctx) == ["public.t"]
    assert names(to_copy(env16.ctx, None, woken=True)) == ["t"]
    assert names(to_copy(env16.ctx, None)) == ["t", "u"]


def test_the_status_says_what_follows(env16: PipelineEnv) -> None:
    begin(env16)
    env16.land("alter table t rename id to key")

    answered, left = "Resync copies it again by itself", "Resync it, or resume it"
    assert answered in dict(status.lines(status.status(env16.ctx)))["paused public.t"]
    decide(env16, on_change="pause")
    line = dict(status.lines(status.status(env16.ctx)))["paused public.t"]
    assert answered not in line
    assert left in line


@pytest.mark.slow
@pytest.mark.spark
def test_a_table_that_changed_is_copied_again_by_itself_and_readable_until_then(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    env16.follow("alter table item alter price type numeric(20,4) using price * 100; delete from item where id < 5")
    assert states(env16) == {"item": "paused", "visit": "ready", "Order Line": "ready"}
    before = shown(env16)

    decide(env16, on_change="pause")
    assert waiting.tables_to_announce(env16.ctx) == []
    assert resync_lines(env16.ctx, None) == ["no table waits for a copy: nothing to do"]
    assert rebuild.resync(env16.ctx, None, env16.submit, woken=True) == []
    assert states(env16)["item"] == "paused"

    decide(env16, on_change="resync")
    assert waiting.tables_to_announce(env16.ctx) == ["public.item"]
    ids = rebuild.resync(env16.ctx, None, env16.submit, woken=True)
    assert shown(env16) == before, "the old table stays readable"
    assert rebuild.switch(env16.ctx, ids, env16.submit)

    assert set(states(env16).values()) == {"ready"}
    assert {each.id: each.state for each in env16.ctx.ledger.loads.builds(env16.name, states=None)} == {ids[0]: "done"}
    assert env16.unlike() == []
    follows(env16)
    assert waiting.tables_to_announce(env16.ctx) == []
    assert len(messages(env16, "schema-change")) == 1
