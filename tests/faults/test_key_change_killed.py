"""A change of a table's key with the process killed at every step around it: each change still meets its row, without a copy."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.flow.load import run as rebuild
from penstock.flow.merge import lake_lock
from penstock.flow.merge import run as merge
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.faults.conftest import run
from tests.faults.steps import Step, called
from tests.faults.test_rebuild_killed import begun
from tests.pipeline_env import PipelineEnv
from tests.scenarios.column_changes import copies, wrong
from tests.scenarios.key_changes import missed
from tests.scenarios.recovery import flush

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CAPTURE = [
    ("capture", step, when, 1)
    for step in (
        Step.WINDOW_LOOK_NOTED,
        Step.WINDOW_PLANNED,
        Step.ROWS_WRITTEN,
        Step.WINDOW_STAGED,
        Step.SLOT_ADVANCED,
        Step.WINDOW_CONFIRMED,
    )
    for when in ("before", "after")
]
PUBLISH = [
    ("publish", step, when, 1)
    for step in (Step.MERGE_PUBLISHED, Step.MERGE_TABLES_ADVANCED, Step.CUT_RECORDED, Step.POINTERS_MOVED_BY_MERGE)
    for when in ("before", "after")
]
MADE = (
    "create table keyed (id int primary key, code text not null unique, n int); "
    "insert into keyed select i, 'c' || i, 0 from generate_series(1, 500) i"
)
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def env(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PipelineEnv]:
    with postgres16.temporary_database("faults_key") as source:
        made = begun(source, lake.database, lake, spark, tmp_path_factory)
        made.sql(MADE)
        flush(made)
        made.capture()
        assert rebuild.switch(made.ctx, rebuild.resync(made.ctx, None, made.submit), made.submit)
        yield made


def changes(n: int) -> str:
    """Return rows by the old key, the change of the key, and rows by the new one, partly in one transaction."""
    old, new = ("id", "code") if n % 2 else ("code", "id")
    first, second = 10 * n + 1, 10 * n + 5
    return (
        f"begin; update keyed set n = {n} where id = {first}; delete from keyed where id = {first + 1}; "
        f"update keyed set {old} = {'-id' if old == 'id' else 'code || chr(43)'} where id = {first + 2}; "
        f"alter table keyed drop constraint keyed_pkey, add constraint keyed_pkey primary key ({new}); "
        f"update keyed set n = {n} where id = {second}; delete from keyed where id = {second + 1}; commit; "
        f"update keyed set {new} = {'-id' if new == 'id' else 'code || chr(43)'} where id = {second + 2}; "
        f"update keyed set n = n + 1 where id % 9 = {n} % 9"
    )


@pytest.mark.parametrize("case", [*CAPTURE, *PUBLISH], ids=called)
def test_whatever_step_is_the_last_each_change_meets_its_row(env: PipelineEnv, case: tuple[str, str, str, int]) -> None:
    verb, *step = case
    copied, before = copies(env), env.lake_rows("keyed")
    env.sql(changes(next(_numbers)))
    flush(env)
    if verb == "publish":
        env.capture()
        with lake_lock.merge_lock(env.ctx):
            attempt = merge.plan(env.ctx, force=True)
            assert attempt is not None
            env.submit(merge.job(env.ctx, attempt))
        verb = f"publish:{attempt}"

    killed = run(env, verb, *map(str, step))

    assert killed.returncode == -signal.SIGKILL, f"never reached: {killed.stderr[-2000:]}"
    if verb == "capture":
        assert sorted(env.lake_rows("keyed")) == sorted(before), "readers have seen nothing"
        env.sql(changes(next(_numbers)))
        run(env, verb, *map(str, step))  # this one finds what the first one left
    flush(env)
    env.capture()
    env.merge()
    assert wrong(env, copied) == []
    assert missed(env) == {}
