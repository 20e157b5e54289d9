"""A fetch of columns killed between any two of its steps, and again: asked for once more, source = lake without a copy.

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
from tests.faults.test_rebuild_killed import begun, readable
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import equal, flush, follows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS: list[Kill] = [
    (Step.FETCH_STARTED, "before", 1),
    (Step.FETCH_STARTED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 1),  # the plan
    (Step.RANGE_LANDED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 2),  # the table's result
    (Step.FETCH_LANDED, "before", 1),
    (Step.FETCH_LANDED, "after", 1),
]
CHANGES = """
update item set name = name || '+' where id % 4 = {0} % 4;
delete from item where id = (select max(id) from item);
insert into item (id, name, price) select coalesce(max(id), 0) + 100, 'new', {0} from item;
"""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def env(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PipelineEnv]:
    with postgres16.temporary_database("faults_fetch") as source:
        made = begun(source, lake.database, lake, spark, tmp_path_factory)
        made.settings.pop("merge")
        yield made


def change(env: PipelineEnv, statements: str) -> None:
    env.sql(statements)
    flush(env)
    env.capture()


@pytest.mark.parametrize("step", STEPS, ids=called)
def test_whatever_step_is_the_last_the_same_request_ends_it_without_a_copy(env: PipelineEnv, step: Kill) -> None:
    number = next(_numbers)
    added = f"alter table item add u{number} uuid default gen_random_uuid()"
    change(env, ";".join([CHANGES.format(number), added, CHANGES.format(number + 300)]))
    env.merge()
    before, copies = readable(env), len(env.ctx.ledger.tables.copies(env.name))
    (waiting,) = [table for table in env.ctx.ledger.tables.all(env.name) if table.state == "paused"]
    assert waiting.remedy == "read", waiting.paused_reason

    killed = run_with_spark(env, "resync", *map(str, step))

    assert killed.returncode == -signal.SIGKILL, f"never reached: {killed.stderr[-2000:]}"
    assert readable(env) == before, "readers have seen nothing"
    change(env, CHANGES.format(number + 100))
    run_with_spark(env, "resync", *map(str, step))  # this one finds what the first one left
    change(env, CHANGES.format(number + 200))
    if any(table.state == "paused" for table in env.ctx.ledger.tables.all(env.name)):
        rebuild.switch(env.ctx, rebuild.resync(env.ctx, None, env.submit), env.submit)
    env.merge()

    equal(env)
    assert len(env.ctx.ledger.tables.copies(env.name)) == copies, "no table was copied"
    slots = env.sql(f"select slot_name from pg_replication_slots where database = '{env.source.name}'")
    assert slots == [(env.ctx.pipeline.slot,)]
    follows(env)
