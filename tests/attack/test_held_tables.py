"""A transaction that holds published tables exclusively, open or prepared, keeps no other table waiting, and no guard is weaker."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.errors import Trouble
from penstock.flow import check, status
from penstock.flow.health.run import judge_pipeline
from penstock.flow.load import resync
from penstock.flow.load import run as rebuild
from penstock.flow.recover import resume
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, messages, states

TABLES = """
create table t (id int primary key, v int);
create table held (id int primary key, v int);
create table grown (id int primary key, v int);
create table root (id int primary key, v int) partition by range (id);
create table leaf partition of root for values from (0) to (100);
create table leaf2 partition of root for values from (100) to (200);
create table picked (id int primary key, v int, secret text);
insert into t select n, n from generate_series(1, 9) n;
insert into held select n, n from generate_series(1, 9) n;
insert into grown select n, n from generate_series(1, 9) n;
insert into root select n * 15, n from generate_series(1, 9) n;
insert into picked select n, n, n from generate_series(1, 9) n;
"""
HOLD = """
-- {n}: another number each time
truncate held;
insert into held values (1, 100), (50, 50);
alter table grown add column more{n} int default 7;
insert into grown values (50 + {n}, 50);
truncate root;
insert into root values (1, 100), (150, 150);
lock table picked in access exclusive mode;
insert into picked values (50 + {n}, 50, 50)
"""
HOLDS = [("open", "rollback"), ("open", "commit"), ("prepared", "rollback"), ("prepared", "commit")]


@contextmanager
def holding(env: PipelineEnv, how: str, end: str, statements: str = HOLD.format(n=0)) -> Iterator[None]:
    """Hold tables exclusively while the body runs, then end the transaction."""
    with env.source.connect() as holder:
        holder.execute(f"begin; {statements}".encode())
        if how == "prepared":
            holder.execute(f"prepare transaction 'held in {env.source.name}'".encode())
        yield
        holder.execute((f"{end} prepared 'held in {env.source.name}'" if how == "prepared" else end).encode())


def adopting(env: PipelineEnv) -> None:
    """Let the pipeline adopt a publication with a filter and a list of columns."""
    name = env.ctx.pipeline.publication
    env.settings["source"] = {**env.settings["source"], "adopt": True}
    env.sql(
        f"{TABLES} create publication {name} for table t, held, grown, root, picked (id, v) where (id > 3) "
        "with (publish_via_partition_root = true)"
    )


def landed(env: PipelineEnv) -> Counter[str]:
    """Count the changes of each table that are landed."""
    names = {table.oid: table.name for table in env.tables}
    found: Counter[str] = Counter()
    for window in env.ctx.ledger.windows.all(env.name):
        for entry in window.files:
            found[names[entry.oid]] += entry.rows
    return found


def landed_since(env: PipelineEnv, before: Counter[str]) -> Counter[str]:
    """Capture, and count the changes of each table that are landed beyond those of before."""
    env.land()
    return landed(env) - before


def test_capture_of_the_others_continues_while_tables_are_held(env: PipelineEnv) -> None:
    adopting(env)
    begin(env, "select")
    env.capture()

    for number, (how, end) in enumerate(HOLDS):
        before = landed(env)
        with holding(env, how, end, HOLD.format(n=number)):
            env.sql("update t set v = -v where id < 4")
            assert landed_since(env, before) == {"t": 3}
            env.sql("update t set v = -v where id = 9")
            assert landed_since(env, before) == {"t": 4}
        held = {"held": 3, "grown": 1, "root": 3, "picked": 1} if end == "commit" else {}
        assert landed_since(env, before) == {"t": 4, **held}
        assert set(states(env).values()) == {"copied"}, "nothing is paused"


@pytest.mark.slow
def test_lake_and_source_are_equal_after_each_end_of_a_hold(env: PipelineEnv) -> None:
    env.bootstrap(TABLES)
    env.capture()

    for number, (how, end) in enumerate(HOLDS):
        with holding(env, how, end, HOLD.format(n=number)):
            env.follow(f"update t set v = v + 1 where id < 4; insert into t values ({100 + number}, 1)")
            assert len(env.lake_rows("t")) == 10 + number
        env.follow()
        assert env.unlike() == []
        assert set(states(env).values()) == {"ready"}


def test_what_reads_no_rows_of_a_held_table_does_not_wait_for_it(env: PipelineEnv) -> None:
    adopting(env)
    begin(env, "select")
    env.capture()
    name = env.ctx.pipeline.publication
    env.ctx.ledger.tables.stop(env.name, {env.table("t").oid: Trouble.usual("schema-change", "a column was renamed")})

    with holding(env, "prepared", "commit"):
        assert {each.slug for each in judge_pipeline(env.ctx).findings} == {"table-paused"}
        assert [each.subject for each in check.check(env.ctx) if each.level == "error"] == []
        assert status.status(env.ctx).source is not None
        assert resync.resync_lines(env.ctx, ["public.t"])
        resume.resume_table(env.ctx, "public.t")
        env.land(f"create table late (id int primary key); alter publication {name} add table late")
        assert states(env)["late"] == "waiting"
        assert states(env)["t"] == "copied"


def test_a_guard_sees_what_was_changed_under_a_hold(env: PipelineEnv) -> None:
    begin(env, TABLES)
    env.capture()

    with holding(env, "prepared", "commit", "alter table held alter v type bigint using v * 100; truncate leaf2"):
        env.land("update t set v = -v")
        assert set(states(env).values()) == {"copied"}
    for _ in range(2):  # until the stream has had time to explain the new file of the partition
        env.land()

    assert {name for name, state in states(env).items() if state == "paused"} == {"held", "root"}


@pytest.mark.slow
def test_a_held_table_keeps_no_other_from_its_new_copy(env16: PipelineEnv) -> None:
    env16.bootstrap(TABLES)
    env16.capture()

    with holding(env16, "open", "rollback"):
        rebuild.resync(env16.ctx, ["public.t"], env16.submit)
        assert messages(env16, "rebuild-switched") or states(env16)["t"] == "ready"
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_held_table_alone_is_not_compared(env: PipelineEnv) -> None:
    adopting(env)
    env.bootstrap()

    with holding(
        env, "prepared", "rollback", "lock table picked in access exclusive mode; select pg_current_xact_id()"
    ):
        found = compare(env.ctx)

    assert {name.rpartition(".")[2] for name in found.unreadable} == {"picked"}
    assert not found.differs
