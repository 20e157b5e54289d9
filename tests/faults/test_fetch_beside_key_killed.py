"""A fetch of a column whose table has changed its key in the same window, killed between any two of its steps: each row is still found."""

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
from tests.faults.steps import Kill, called
from tests.faults.test_column_fetch_killed import STEPS, change
from tests.faults.test_key_change_killed import MADE, changes
from tests.faults.test_rebuild_killed import begun
from tests.pipeline_env import PipelineEnv
from tests.scenarios.column_changes import copies, paused, wrong
from tests.scenarios.key_changes import missed
from tests.scenarios.recovery import flush

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = (
    "update keyed set n = n + 1 where id % 7 = {0} % 7; delete from keyed where id = (select max(id) from keyed); "
    "insert into keyed (id, code, n) values ({0} + 10000, 'new{0}', {0})"
)
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def env(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PipelineEnv]:
    with postgres16.temporary_database("faults_fetch_key") as source:
        made = begun(source, lake.database, lake, spark, tmp_path_factory)
        made.settings.pop("merge")
        made.sql(MADE)
        flush(made)
        made.capture()
        assert rebuild.switch(made.ctx, rebuild.resync(made.ctx, None, made.submit), made.submit)
        yield made


@pytest.mark.parametrize("step", STEPS, ids=called)
def test_rows_of_both_keys_get_their_values_whatever_step_is_the_last(env: PipelineEnv, step: Kill) -> None:
    number, copied = next(_numbers), copies(env)
    added = f"alter table keyed add u{number} uuid default gen_random_uuid()"
    change(env, ";".join([changes(number), added, ROWS.format(number)]))
    env.merge()
    before = sorted(env.lake_rows("keyed"))
    waiting = [table for table in env.ctx.ledger.tables.all(env.name) if table.state == "paused"]
    assert [(table.name, table.remedy == "read") for table in waiting] == [("keyed", True)], paused(env)

    killed = run_with_spark(env, "resync", *map(str, step))

    assert killed.returncode == -signal.SIGKILL, f"never reached: {killed.stderr[-2000:]}"
    assert sorted(env.lake_rows("keyed")) == before, "readers have seen nothing"
    change(env, ROWS.format(number + 100))
    run_with_spark(env, "resync", *map(str, step))  # this one finds what the first one left
    change(env, ROWS.format(number + 200))
    if paused(env):
        rebuild.switch(env.ctx, rebuild.resync(env.ctx, None, env.submit), env.submit)
    env.merge()

    assert wrong(env, copied) == []
    assert missed(env) == {}
