"""A fetch of a partition's rows killed between any two of its steps, and again: source = lake without a copy of the table.

The process that is killed has no Spark: it asks this one to carry its orders out.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.flow.load import run as rebuild
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.faults.conftest import run_with_spark
from tests.faults.steps import Kill, Step, called
from tests.faults.test_column_fetch_killed import change
from tests.faults.test_rebuild_killed import begun, readable
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import equal, follows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS: list[Kill] = [
    (Step.FETCH_STARTED, "after", 1),
    (Step.RANGE_LANDED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 2),  # the table's result
    (Step.FETCH_LANDED, "before", 1),
    (Step.FETCH_LANDED, "after", 1),
    (Step.MERGE_BEGUN, "after", 1),
    (Step.MERGE_PUBLISHED_BY_FLOW, "before", 1),
    (Step.MERGE_PUBLISHED_BY_FLOW, "after", 1),
]
MADE = """
create table day (id int, s text, n int, primary key (id, s)) partition by range (id);
create table day_0 partition of day for values from (-1000) to (0);
insert into day select -i, 's', i from generate_series(1, 50) i;
"""
ATTACHED = """
create table day_{0} (n int, s text not null, id int not null);
insert into day_{0} select -i, 'old', {0} * 100 + i from generate_series(0, 20) i;
alter table day attach partition day_{0} for values from ({0}00) to ({0}99);
"""
CHANGES = """
update day set n = n + 1 where id % 4 = {0} % 4; delete from day where id % 100 = {0} % 20;
insert into day select {0}50 + i, 'new' || {1}, i from generate_series(0, 3) i;
"""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def env(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PipelineEnv]:
    with postgres16.temporary_database("faults_partitions") as source:
        source.execute(MADE)
        made = begun(source, lake.database, lake, spark, tmp_path_factory)
        made.settings.pop("merge")
        yield made


@pytest.mark.parametrize("step", STEPS, ids=called)
def test_whatever_step_is_the_last_the_same_request_ends_it_without_a_copy(env: PipelineEnv, step: Kill) -> None:
    number = next(_numbers)
    change(env, ATTACHED.format(number) + CHANGES.format(number, 1))
    env.merge()
    before, copies = readable(env), len(env.ctx.ledger.tables.copies(env.name))
    (waiting,) = [table for table in env.ctx.ledger.tables.all(env.name) if table.state == "paused"]
    assert waiting.remedy == "read", waiting.paused_reason

    killed = run_with_spark(env, "resync", *map(str, step))

    assert killed.returncode == -signal.SIGKILL, f"never reached: {killed.stderr[-2000:]}"
    assert (readable(env) == before) == (step != STEPS[-1]), "readers have seen nothing until the cut"
    change(env, CHANGES.format(number, 2))
    run_with_spark(env, "resync", *map(str, step))  # this one finds what the first one left
    change(env, CHANGES.format(number, 3))
    if any(table.state == "paused" for table in env.ctx.ledger.tables.all(env.name)):
        rebuild.switch(env.ctx, rebuild.resync(env.ctx, None, env.submit), env.submit)
    env.merge()

    equal(env)
    assert len(env.ctx.ledger.tables.copies(env.name)) == copies, "no table was copied"
    assert {each.rows for each in env.ctx.ledger.fetches.all(env.name)} <= set(range(40)), "nothing else was read"
    follows(env)
