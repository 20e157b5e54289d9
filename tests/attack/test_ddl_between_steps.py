"""DDL with rows around it between any two steps of capture, copy, merge, publish, resync and fetch: nothing is lost, nothing sticks."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from penstock.errors import LakeError
from penstock.flow.load import bootstrap
from penstock.flow.load import run as rebuild
from penstock.source import ddl_trigger
from tests.faults.steps import Step, owner
from tests.pipeline_env import PipelineEnv, copy_without_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = """
create table plain (id int primary key, code text not null unique, a text, b text, n int);
alter table plain alter b set storage external;
insert into plain select i, 'c' || i, 'a', repeat(i::text, 3000), i from generate_series(1, 60) i;
create table parted (id int primary key, a text, n int) partition by range (id);
create table parted_1 partition of parted for values from (0) to (100);
create table parted_2 partition of parted for values from (100) to (200);
insert into parted select i, 'a', i from generate_series(1, 199, 7) i;
"""
EDITS = """
update plain set {a} = {a} || '{n}' where id % 5 = {n} % 5; update plain set n = {n} where id % 7 = {n} % 7;
update plain set id = id + 1000 where id = (select min(id) from plain); delete from plain where id = (select max(id) from plain);
insert into plain (id, code) values (2000 + {n}, 'new {n}'); update parted set n = {n} where id % 3 = {n} % 3
"""


def migrations(n: int) -> list[str]:
    """Return the statements of the nth migration; each leaves the columns as the next expects them."""
    key = ("code", "id")[n % 2]
    return [
        f"begin; {EDITS.format(a='a', n=n)}; alter table plain rename a to a_; {EDITS.format(a='a_', n=n + 500)}; commit",
        f"alter table plain drop constraint plain_pkey, add constraint plain_pkey primary key ({key})",
        f"alter table plain rename a_ to a; alter table plain add x{n} int default {n}; update plain set x{n} = 0 where id % 4 = 0",
        f"alter table parted add y{n} text default 'y'; alter table plain drop x{n}",
        f"create table parted_{n + 10} partition of parted for values from ({n * 100 + 1000}) to ({n * 100 + 1100})",
        f"insert into parted (id, a) values ({n * 100 + 1001}, 'new'); alter table parted rename a to z; alter table parted rename z to a",
    ]


CAPTURE = (
    Step.WINDOW_LOOK_NOTED,
    Step.WINDOW_PLANNED,
    Step.FILE_PERSISTED,
    Step.WINDOW_STAGED,
    Step.SLOT_ADVANCED,
    Step.WINDOW_CONFIRMED,
)
MERGE = (
    Step.MERGE_BEGUN,
    Step.MERGE_PUBLISHED,
    Step.MERGE_TABLES_ADVANCED,
)
RESYNC = (
    Step.READ_STARTED,
    Step.COPY_FINISHED,
    Step.REBUILD_RUN_NOTED,
    Step.REBUILD_ADVANCED,
    Step.MERGE_PUBLISHED,
)
FETCH = (Step.READ_STARTED, Step.FETCH_LANDED)


def between(monkeypatch: pytest.MonkeyPatch, step: str, work: Callable[[], object]) -> list[str]:
    """Do this work right before and right after the first call of a step; return where it was done."""
    found, name = owner(step)
    original, done = getattr(found, name), list[str]()

    def wrapped(*arguments: Any, **named: Any) -> Any:
        first = not done
        if first:
            done.append("before")
            work()
        result = original(*arguments, **named)
        if first:
            done.append("after")
            work()
        return result

    monkeypatch.setattr(found, name, wrapped)
    return done


def what_is_wrong(env: PipelineEnv) -> list[str]:
    """Bring the pipeline to rest as its DAGs do; return what is wrong then."""
    for _ in range(3):
        env.follow()
        env.wake()
    waiting = [f"{name} is paused: {reason}" for name, reason in env.paused().items()]
    return [*waiting, *env.unlike()]


@pytest.mark.parametrize("trigger", [False, True], ids=["without the trigger", "with the trigger"])
def test_ddl_between_any_two_steps_ends_in_an_equal_lake(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch, *, trigger: bool
) -> None:
    env16.settings["source"] = {**env16.settings["source"], "ddl_trigger": trigger}
    env16.settings["lake"] = {"on_dropped_partition": "follow"}
    env16.sql(TABLES)
    if trigger:
        env16.sql(ddl_trigger.install_statement())
    statements = iter([text for n in range(1, 100) for text in migrations(n)])

    def migrate() -> None:
        env16.sql(next(statements))

    bootstrap.prepare(env16.ctx)
    migrate()
    bootstrap.copy(env16.ctx, copy_without_spark)
    migrate()

    def merged() -> None:
        env16.follow("update plain set n = n + 1 where id % 9 = 0; update parted set n = n + 1")

    def resynced() -> None:
        with suppress(LakeError):  # a table that is altered while it is built is asked for again
            rebuild.switch(
                env16.ctx, rebuild.resync(env16.ctx, ["public.plain", "public.parted"], env16.submit), env16.submit
            )

    def fetched() -> None:
        env16.land("alter table plain add column u uuid default gen_random_uuid()")
        env16.wake()
        env16.sql("alter table plain drop column u")

    found = dict[str, list[str]]()
    for steps, verb in ((CAPTURE, merged), (MERGE, merged), (RESYNC, resynced), (FETCH, fetched)):
        for step in steps:
            with monkeypatch.context() as patched:
                done = between(patched, step, migrate)
                verb()
            assert done == ["before", "after"], step
            if wrong := what_is_wrong(env16):
                found[f"{verb.__name__} at {step}"] = wrong

    assert found == {}
    assert env16.missed() == {}
