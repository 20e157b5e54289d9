"""The copy killed between any two of its steps while writers are at work: finished tables stay, the rest is exact.

What a resumed copy reads under its later snapshot is also in the stream, since the slot is older; every change must
count once. Two writers change all tables before, during and after the kill, one transaction outlives the kill.
"""

import itertools
import random
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from penstock.conditions import Directive
from penstock.errors import SourceError
from penstock.flow.load import bootstrap
from penstock.flow.spark_job import SparkJob
from penstock.lsn import Lsn
from tests.faults.harness import killed, start
from tests.faults.oracle import at_source, landed, landed_multiset, multiset_at_source
from tests.faults.steps import Step, called, slow
from tests.pipeline_env import PipelineEnv, copy_without_spark, wait_for
from tests.waiting import at_work

STEPS = [
    (Step.SLOT_CREATED, "after", 1),
    (Step.RANGE_LANDED, "after", 3),
    (Step.COPY_FINISHED, "after", 1),
]
TWINS = [  # each leaves behind almost what one of the steps above does
    (Step.SLOT_RECORDED, "after", 1),
    (Step.READ_STARTED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 2),  # the result of the first table
    (Step.SLOT_INTENDED, "before", 1),
    (Step.SLOT_CREATED, "before", 1),
    (Step.SLOT_TEXT_READ, "after", 1),
    (Step.TABLES_SAVED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 1),  # the plan
    (Step.COPIED_ROWS_WRITTEN, "after", 1),
    (Step.TEXT_WRITTEN, "after", 4),
    (Step.BOOTSTRAP_FINISHED, "after", 1),
    (Step.SLOT_INTENDED, "after", 1),
    (Step.TABLES_SAVED, "before", 1),
    (Step.SLOT_RECORDED, "before", 1),
    (Step.READ_STARTED, "before", 1),
    (Step.TEXT_WRITTEN, "before", 1),
    (Step.COPIED_FILE_CLOSED, "after", 1),
    (Step.TEXT_WRITTEN, "before", 2),
    (Step.TEXT_WRITTEN, "after", 3),
    (Step.COPY_FINISHED, "before", 1),
    (Step.COPY_FINISHED, "after", 2),
    (Step.BOOTSTRAP_FINISHED, "before", 1),
]
CRASHES = [
    (Step.SLOT_CREATED, "after", 1),
    (Step.RANGE_LANDED, "after", 3),
    (Step.TEXT_WRITTEN, "after", 2),
]
TABLES = """
create table account (id int primary key, owner text, note text);
alter table account alter note set storage external;
create table visit (page text, n int, body text);
alter table visit replica identity full;
alter table visit alter body set storage external;
create table "Order Line" (id int primary key, name text);
insert into account select n, 'owner ' || n, repeat(md5(n::text), 100) from generate_series(1, 400) n;
insert into visit select 'page ' || n % 5, n % 3, repeat('v', 3000) from generate_series(1, 60) n;
insert into "Order Line" select n, 'line ' || n from generate_series(1, 50) n;
"""


BEFORE_THE_SNAPSHOT = """
insert into account values (-1, 'open', 'before the snapshot');
delete from visit where ctid in (select ctid from visit where page = 'page 1' limit 5 for update skip locked);
update account set owner = 'no snapshot sees it' where id = 1;
"""
AFTER_THE_SNAPSHOT = """
truncate "Order Line";
insert into "Order Line" values (1, 'after the snapshot');
"""

_numbers = itertools.count(1)


def transaction(writer: int, number: int) -> str:
    """Return one transaction of a writer: every kind of change, on rows that no other writer changes by key."""
    chance = random.Random(1000 * writer + number)
    mine, new = 2 * chance.randrange(1, 200) + writer, 2 * number + writer + 1000
    return f"""
    begin;
    update account set owner = owner || '+' where id = {mine};
    update account set note = repeat(md5('{new}'), 90) where id = {2 * chance.randrange(1, 200) + writer};
    insert into account values ({new}, null, repeat(md5('{new}'), 100));
    update account set id = id + 1000000 where id = {new - 4};
    delete from account where id = {2 * chance.randrange(1, 200) + writer};
    savepoint inner_one;
    insert into visit values ('rolled back', {number}, '');
    rollback to inner_one;
    insert into visit values ('page {number % 5}', {number % 3}, repeat('v', 3000));
    delete from visit where ctid = (select ctid from visit limit 1 for update skip locked);
    savepoint inner_two;
    update visit set n = n + 10 where ctid = (select ctid from visit where n < 5 limit 1 for update skip locked);
    release inner_two;
    insert into "Order Line" values ({new}, '');
    update "Order Line" set name = name || '!' where id = {1 + mine % 50} and id % 2 = {writer};
    commit;
    """


def writers(env: PipelineEnv) -> AbstractContextManager[None]:
    """Keep two writers busy during the block."""

    def work(writer: int, stopped: Callable[[float], bool]) -> None:
        with env.source.connect() as conn:
            for number in _numbers:
                conn.execute(transaction(writer, number).encode())
                if stopped(0.01):
                    return

    return at_work(partial(work, 0), partial(work, 1))


def begin(env: PipelineEnv) -> None:
    env.settings["copy"] = {"range_bytes": "8KiB"}  # several files per table
    env.prepare(TABLES)


def slot_position(env: PipelineEnv) -> Lsn | None:
    found = env.sql(
        f"select confirmed_flush_lsn::text from pg_replication_slots where slot_name = '{env.ctx.pipeline.slot}'"
    )
    return Lsn.parse(found[0][0]) if found else None


def proved(env: PipelineEnv) -> dict[int, str]:
    """Return the copies that are finished, by table: by the ledger, or by their result file."""
    folder = f"{env.name}/copies"
    results = [Path(path) for path in env.ctx.landing.list(folder) if path.endswith(".json")]
    found = {int(path.stem): path.parent.name for path in results if path.stem != "plan"}
    return found | {copied.oid: copied.copy_id for copied in env.ctx.ledger.loads.copies(env.name, state="ready")}


def goes_on_exactly(env: PipelineEnv) -> list[str]:
    """Resume the copy with a transaction open that its snapshot must not see; return the tables that differ then."""
    finished, position = proved(env), slot_position(env)

    with env.source.connect(autocommit=False) as outliving, writers(env):
        if position is not None:  # a slot to be made would wait for this transaction
            outliving.execute(BEFORE_THE_SNAPSHOT)

        left = [AFTER_THE_SNAPSHOT]

        def submit(job: SparkJob) -> None:
            if left:  # the table that is truncated is copied again, under a later snapshot
                outliving.execute("insert into account values (-2, 'open', 'after the snapshot')")
                outliving.commit()
                env.sql(left.pop())
            copy_without_spark(job)

        bootstrap.copy(env.ctx, submit)

    assert env.ctx.ledger.pipelines.get(env.name).state == "running"
    assert position in (None, env.ctx.ledger.pipelines.get(env.name).consistent_point), "the slot was created again"
    copies = {copied.oid: copied.copy_id for copied in env.ctx.ledger.loads.copies(env.name, state="ready")}
    assert len(copies) == 3
    assert finished.items() <= copies.items(), "a finished table was copied again"
    assert differing(env) == []
    env.sql(transaction(0, next(_numbers)) + transaction(1, next(_numbers)))
    return differing(env)


def differing(env: PipelineEnv) -> list[str]:
    """Capture, and return the tables in which what is landed is not what the source has."""
    env.capture()
    keyed = ("account", "Order Line")
    found = [name for name in keyed if landed(env, name, "id") != at_source(env, name, "id")]
    return found + ["visit"] * (landed_multiset(env, "visit") != multiset_at_source(env, "visit"))


def kill(env: PipelineEnv, step: str, when: str, occurrence: int) -> None:
    with writers(env):
        killed(env, "copy", step, when, occurrence)


@pytest.mark.parametrize("step", [*STEPS, *slow(TWINS)], ids=called)
def test_whatever_step_is_the_last_the_copy_continues_exactly(doomed: PipelineEnv, step: tuple[str, str, int]) -> None:
    begin(doomed)
    kill(doomed, *step)

    assert goes_on_exactly(doomed) == []


@pytest.mark.parametrize("step", [CRASHES[0], *slow(CRASHES[1:])], ids=called)
def test_a_crash_of_the_source_with_the_copy_loses_nothing(doomed: PipelineEnv, step: tuple[str, str, int]) -> None:
    begin(doomed)
    kill(doomed, *step)
    doomed.source.server.restart("immediate")

    assert goes_on_exactly(doomed) == []


@pytest.mark.slow
def test_a_copy_killed_again_and_again_finishes_one_table_at_a_time(doomed: PipelineEnv) -> None:
    begin(doomed)
    for expected in (1, 2):
        kill(doomed, Step.TEXT_WRITTEN, "after", 2)  # the first table that this run finishes is its last
        assert len(proved(doomed)) == expected
    snapshots = {copied.snapshot for copied in doomed.ctx.ledger.loads.copies(doomed.name)}
    assert len(snapshots) == 2, "each run copies under a snapshot of its own"
    assert goes_on_exactly(doomed) == []


def test_a_copy_killed_while_its_slot_waits_to_be_made_can_be_run_again(doomed: PipelineEnv) -> None:
    begin(doomed)
    making = f"from pg_replication_slots where slot_name = '{doomed.ctx.pipeline.slot}' and active and confirmed_flush_lsn is null"
    with doomed.source.connect() as watching, doomed.source.connect(autocommit=False) as blocking:
        blocking.execute("insert into account values (-3, 'blocks the slot', '')")
        with start(doomed, "copy") as waiting:
            wait_for(watching, f"select count(*) = 1 {making}")
            waiting.kill()
        assert waiting.returncode == -signal.SIGKILL

        # the server continues making the slot, or has noticed that its client is gone and made way for a second one
        doomed.settings["source"]["slot_timeout"] = 3
        with pytest.raises(SourceError, match=r"slot-in-use|slot-creation-blocked") as refused:
            bootstrap.copy(doomed.ctx, copy_without_spark)
        assert refused.value.directive is Directive.RETRY

        blocking.commit()  # now it is made and stays, or the server notices and drops it
        wait_for(watching, f"select count(*) = 0 {making}")
    assert goes_on_exactly(doomed) == []
