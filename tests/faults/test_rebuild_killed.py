"""A resync or a replay killed between any two of its steps, again and again: asked for once more, source = lake.

One env serves all tests. The process that is killed has no Spark: it asks this one to carry its orders out, so that it
can be killed before, between and after them.
"""

import pytest

from penstock.flow.load import run as rebuild
from penstock.flow.load.run import Replay
from penstock.flow.merge import run as merge
from penstock.flow.spark_job import SparkJob
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database
from tests.conftest import NewServer
from tests.faults.conftest import NewPipeline
from tests.faults.harness import killed, killed_twice, killed_unseen, run, snapshots
from tests.faults.steps import Kill, Step, called, slow
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import CHANGES, SHOP, follows

pytestmark = pytest.mark.spark

TABLES = ["public.item", "public.visit"]
NAMES = ",".join(TABLES)
ONE_WINDOW = {"rebuild_bytes": 1}
"""So small are the chunks of a build that each holds one window."""
STARTING: list[Kill] = [
    (Step.REBUILD_STARTED, "before", 1),
    (Step.REBUILD_STARTED, "after", 1),
]
BUILDING: list[Kill] = [
    (Step.REBUILD_RUN_NOTED, "before", 1),
    (Step.REBUILD_RUN_NOTED, "after", 1),
    (Step.REBUILD_ADVANCED, "before", 1),
    (Step.POINTERS_MOVED_BY_REBUILD, "after", 1),
    (Step.REBUILD_ADVANCED, "after", 1),
    (Step.MERGE_BEGUN, "after", 1),
    (Step.MERGE_PUBLISHED, "before", 1),
    (Step.MERGE_TABLES_ADVANCED, "after", 1),
    (Step.POINTERS_MOVED_BY_MERGE, "after", 1),
    (Step.MERGE_PUBLISHED, "after", 1),
]
COPYING: list[Kill] = [
    (Step.READ_STARTED, "before", 1),
    (Step.READ_STARTED, "after", 1),
    (Step.RANGE_LANDED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 2),  # the result of the first table
    (Step.COPY_FINISHED, "before", 1),
    (Step.COPY_FINISHED, "after", 1),
]
LOADING: list[Kill] = [
    (Step.DATA_FILES_TAKEN_OVER, "after", 1),
    (Step.ROWS_REPLACED, "before", 1),
    (Step.ROWS_REPLACED, "after", 1),
    (Step.TABLE_STAGED, "after", 1),
]
QUICK = {("resync", Step.REBUILD_ADVANCED, "before", 1)}
SECOND_CHUNK: Kill = (Step.REBUILD_ADVANCED, "before", 2)  # not of a resync: its copy saw what is landed
CASES = [("resync", *step) for step in (*COPYING, *BUILDING)] + [
    ("replay", *step) for step in (*STARTING, *BUILDING, SECOND_CHUNK)
]


@pytest.fixture(scope="module")
def env(new_pipeline: NewPipeline) -> PipelineEnv:
    return new_pipeline("faults_rebuild", SHOP, merge=ONE_WINDOW)


def land(env: PipelineEnv, number: int) -> None:
    """Land a window, and merge it."""
    env.follow(CHANGES.format(number))


@pytest.mark.parametrize("case", slow(CASES, but=QUICK), ids=called)
def test_whatever_step_is_the_last_the_same_request_ends_it(
    env: PipelineEnv, number: int, case: tuple[str, Step, str, int]
) -> None:
    verb, kill = case[0], case[1:]
    start_young(env)
    land(env, number)
    land(env, number + 300)
    asked = f"{verb}:{NAMES}"

    if case[1:3] == (Step.MERGE_PUBLISHED, "after"):  # the switch is done
        killed(env, asked, *kill)
    else:
        killed_twice(env, asked, kill, lambda: env.land(CHANGES.format(number + 100)))

    again(env, verb)
    follows(env)
    assert env.ctx.ledger.loads.builds(env.name) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", LOADING, ids=called)
def test_a_load_that_ends_between_files_and_commit_is_begun_again(env: PipelineEnv, number: int, step: Kill) -> None:
    start_young(env)
    land(env, number)

    killed_unseen(env, f"resync here:{NAMES}", [step], snapshots)

    again(env, "resync")
    follows(env)
    assert env.ctx.ledger.loads.builds(env.name) == []


def start_young(env: PipelineEnv) -> None:
    """Let windows be few: a replay begins with the newest copy."""
    if len(env.ctx.ledger.windows.all(env.name)) > 40:
        ids = rebuild.resync(env.ctx, TABLES, env.submit)
        assert rebuild.switch(env.ctx, ids, env.submit)


def again(env: PipelineEnv, verb: str) -> None:
    """Ask for the same once more, and see that it is done."""
    ids = (
        rebuild.resync(env.ctx, TABLES, env.submit)
        if verb == "resync"
        else rebuild.replay(env.ctx, Replay(tuple(TABLES)), env.submit)
    )
    assert rebuild.switch(env.ctx, ids, env.submit)
    assert env.unlike() == []


@pytest.mark.slow
def test_a_merge_that_was_overtaken_cannot_switch_a_table(env: PipelineEnv) -> None:
    land(env, 50)
    ids = rebuild.resync(env.ctx, TABLES, env.submit)
    env.land(CHANGES.format(51))  # as far as the copy's snapshot: before that there is nothing to switch to
    overtaken, newer = env.prepared(), env.prepared()
    before = snapshots(env)

    late = run(env, f"publish:{overtaken}")

    assert "ledger-conflict" in late.stderr
    assert snapshots(env) == before
    merge.publish(env.ctx, newer)
    assert {each.id for each in env.ctx.ledger.loads.builds(env.name, states=["done"])} >= set(ids)
    assert env.unlike() == []
    follows(env)


@pytest.mark.slow
def test_a_switch_that_was_published_by_half_is_taken_over(new_pipeline: NewPipeline) -> None:
    env = new_pipeline("faults_rebuild_apart", SHOP, apart=True, merge=ONE_WINDOW)
    land(env, 1)
    for step in (Step.POINTERS_MOVED_BY_REBUILD, Step.POINTERS_MOVED_BY_MERGE):
        killed(env, f"resync:{NAMES}", step, "after")

    env.merge(force=True)  # finds that the lake has moved

    assert {each.state for each in env.ctx.ledger.loads.builds(env.name, states=None)} == {"done"}
    assert env.unlike() == []
    follows(env)


@pytest.mark.slow
def test_the_source_may_be_crashed_while_a_table_is_copied(
    new_server: NewServer, binaries16: Binaries, new_pipeline: NewPipeline
) -> None:
    server = new_server(binaries16, {"checkpoint_timeout": "1h"})
    source = Database(server, "postgres")
    env = new_pipeline("faults_rebuild_crash", SHOP, source=source, apart=True, merge=ONE_WINDOW)
    crashed: list[SparkJob] = []

    def submit(job: SparkJob) -> None:
        if not crashed:
            crashed.append(job)
            server.stop(mode="immediate")
            server.start()
        env.submit(job)

    with pytest.raises(Exception, match="snapshot"):
        rebuild.resync(env.ctx, TABLES, submit)
    env.flush(CHANGES.format(3))

    again(env, "resync")
    follows(env)
    server.remove()


@pytest.mark.slow
def test_the_holder_of_the_snapshot_may_be_ended_after_some_tables_are_copied(env: PipelineEnv) -> None:
    land(env, 70)

    def submit(job: SparkJob) -> None:
        env.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name like '%:resync' and state = 'idle in transaction' and datname = current_database()"
        )
        env.submit(job)

    with pytest.raises(Exception, match=r"snapshot|SparkException|Py4J"):
        rebuild.resync(env.ctx, TABLES, submit)
    env.flush(CHANGES.format(71))

    again(env, "resync")
    follows(env)
