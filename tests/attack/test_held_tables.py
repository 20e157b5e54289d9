"""A transaction that holds published tables exclusively, open or prepared, keeps no other table waiting, and no guard is weaker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.flow import check, status
from penstock.flow.health.check import look
from penstock.flow.rebuild import resync_request
from penstock.flow.rebuild import run as rebuild
from penstock.flow.recover import resume
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, states, told
from tests.scenarios.recovery import equal, flush

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
def holding(world: PipelineEnv, how: str, end: str, statements: str = HOLD.format(n=0)) -> Iterator[None]:
    """Hold tables exclusively while the body runs, then end the transaction."""
    with world.source.connect() as holder:
        holder.execute(f"begin; {statements}".encode())
        if how == "prepared":
            holder.execute(f"prepare transaction 'held in {world.source.name}'".encode())
        yield
        holder.execute((f"{end} prepared 'held in {world.source.name}'" if how == "prepared" else end).encode())


def adopting(world: PipelineEnv) -> None:
    """Let the pipeline adopt a publication with a filter and a list of columns."""
    name = world.ctx.pipeline.publication
    world.settings["source"] = {**world.settings["source"], "adopt": True}
    world.sql(
        f"{TABLES} create publication {name} for table t, held, grown, root, picked (id, v) where (id > 3) "
        "with (publish_via_partition_root = true)"
    )


def landed(world: PipelineEnv) -> Counter[str]:
    """Count the changes of each table that are landed."""
    names = {table.oid: table.name for table in world.ctx.ledger.tables.all(world.name)}
    found: Counter[str] = Counter()
    for window in world.ctx.ledger.windows.all(world.name):
        for entry in window.files:
            found[names[entry.oid]] += entry.rows
    return found


def brought(world: PipelineEnv, before: Counter[str]) -> Counter[str]:
    """Capture, and count the changes of each table that are landed beyond those of before."""
    flush(world)
    world.capture()
    return landed(world) - before


def test_capture_of_the_others_goes_on_while_tables_are_held(bare: PipelineEnv) -> None:
    adopting(bare)
    begin(bare, "select")
    bare.capture()

    for number, (how, end) in enumerate(HOLDS):
        before = landed(bare)
        with holding(bare, how, end, HOLD.format(n=number)):
            bare.sql("update t set v = -v where id < 4")
            assert brought(bare, before) == {"t": 3}
            bare.sql("update t set v = -v where id = 9")
            assert brought(bare, before) == {"t": 4}
        held = {"held": 3, "grown": 1, "root": 3, "picked": 1} if end == "commit" else {}
        assert brought(bare, before) == {"t": 4, **held}
        assert set(states(bare).values()) == {"copied"}, "nothing is paused"


@pytest.mark.slow
def test_lake_and_source_are_equal_after_each_end_of_a_hold(world: PipelineEnv) -> None:
    world.sql(TABLES)
    world.bootstrap()
    world.capture()

    for number, (how, end) in enumerate(HOLDS):
        with holding(world, how, end, HOLD.format(n=number)):
            world.sql(f"update t set v = v + 1 where id < 4; insert into t values ({100 + number}, 1)")
            flush(world)
            world.capture()
            world.merge()
            assert len(world.lake_rows("t")) == 10 + number
        flush(world)
        world.capture()
        world.merge()
        equal(world)
        assert set(states(world).values()) == {"ready"}


def test_what_reads_no_rows_of_a_held_table_does_not_wait_for_it(bare: PipelineEnv) -> None:
    adopting(bare)
    begin(bare, "select")
    bare.capture()
    name = bare.ctx.pipeline.publication
    (t,) = (table for table in bare.ctx.ledger.tables.all(bare.name) if table.name == "t")
    bare.ctx.ledger.tables.pause(bare.name, t.oid, slug="schema-change", reason="a column was renamed")

    with holding(bare, "prepared", "commit"):
        assert {each.slug for each in look(bare.ctx).findings} <= {"nobody-is-told"}
        assert [each.subject for each in check.check(bare.ctx) if each.level == "error"] == []
        assert status.status(bare.ctx).source is not None
        assert resync_request.resync_lines(bare.ctx, ["public.t"])
        resume.resume_table(bare.ctx, "public.t")
        bare.sql(f"create table late (id int primary key); alter publication {name} add table late")
        bare.capture()
        assert states(bare)["late"] == "waiting"
        assert states(bare)["t"] == "copied"


def test_a_guard_sees_what_was_changed_under_a_hold(bare: PipelineEnv) -> None:
    begin(bare, TABLES)
    bare.capture()

    with holding(bare, "prepared", "commit", "alter table held alter v type bigint using v * 100; truncate leaf2"):
        bare.sql("update t set v = -v")
        flush(bare)
        bare.capture()
        assert set(states(bare).values()) == {"copied"}
    for _ in range(2):  # until the stream has had time to explain the new file of the partition
        flush(bare)
        bare.capture()

    assert {name for name, state in states(bare).items() if state == "paused"} == {"held", "root"}


@pytest.mark.slow
def test_a_held_table_keeps_no_other_from_its_new_copy(world16: PipelineEnv) -> None:
    world16.sql(TABLES)
    world16.bootstrap()
    world16.capture()

    with holding(world16, "open", "rollback"):
        rebuild.resync(world16.ctx, ["public.t"], world16.submit)
        assert told(world16, "rebuild-switched") or states(world16)["t"] == "ready"
    equal(world16)


@pytest.mark.slow
def test_a_held_table_alone_is_not_compared(world: PipelineEnv) -> None:
    adopting(world)
    world.bootstrap()

    with holding(
        world, "prepared", "rollback", "lock table picked in access exclusive mode; select pg_current_xact_id()"
    ):
        found = compare(world.ctx)

    assert {name.rpartition(".")[2] for name in found.unreadable} == {"picked"}
    assert not found.differs
