"""A resync or a replay killed between any two of its steps, again and again: asked for once more, source = lake.

One env serves all tests. The process that is killed has no Spark: it asks this one to carry its orders out, so that it
can be killed before, between and after them.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.compare.lake_reader import lake_reader, sql_catalog
from penstock.flow.load import run as rebuild
from penstock.flow.load.run import Replay
from penstock.flow.merge import run as merge
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.conftest import LakeCatalog, NewServer
from tests.faults.conftest import run, run_with_spark
from tests.faults.steps import Kill, Step, called, slow
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import SHOP, equal, flush, follows

pytestmark = pytest.mark.spark

TABLES = ["public.item", "public.visit"]
CHANGES = """
update item set name = name || '+' where id % 4 = {0} % 4;
delete from item where id = (select max(id) from item);
insert into item select coalesce(max(id), 0) + 100, 'new', {0} from item;
delete from visit where ctid = (select ctid from visit limit 1);
insert into visit values ('page', {0}), ('page', {0});
"""
BUILDING: list[Kill] = [
    (Step.REBUILD_STARTED, "before", 1),
    (Step.REBUILD_STARTED, "after", 1),
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
    (Step.REBUILD_COPY_STARTED, "before", 1),
    (Step.REBUILD_COPY_STARTED, "after", 1),
    (Step.RANGE_LANDED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 2),  # the result of the first table
    (Step.REBUILD_COPY_FINISHED, "before", 1),
    (Step.REBUILD_COPY_FINISHED, "after", 1),
]
LOADING: list[Kill] = [
    (Step.DATA_FILES_TAKEN_OVER, "after", 1),
    (Step.ROWS_REPLACED, "before", 1),
    (Step.ROWS_REPLACED, "after", 1),
    (Step.TABLE_STAGED, "after", 1),
]
QUICK = {("resync", Step.REBUILD_ADVANCED, "before", 1)}
SECOND_CHUNK: Kill = (
    Step.REBUILD_ADVANCED,
    "before",
    2,
)  # not of a resync: its copy saw what is landed
CASES = [("resync", *step) for step in (*COPYING, *BUILDING)] + [
    ("replay", *step) for step in (*BUILDING, SECOND_CHUNK)
]


@pytest.fixture(scope="module")
def env(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PipelineEnv]:
    """A pipeline whose ledger and catalog are one database, as by default; a chunk holds one window."""
    with postgres16.temporary_database("faults_rebuild") as source:
        yield begun(source, lake.database, lake, spark, tmp_path_factory)


def begun(
    source: Database, ledger: Database, lake: LakeCatalog, spark: SparkSession, folders: pytest.TempPathFactory
) -> PipelineEnv:
    folder = folders.mktemp(source.name)
    made = PipelineEnv(source, ledger, folder / "landing", f"{source.name}{source.server.port}", lake=lake, spark=spark)
    made.settings = {
        "source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"},
        "merge": {"rebuild_bytes": 1},
    }
    made.sql(SHOP)
    made.bootstrap()
    return made


def change(env: PipelineEnv, number: int) -> None:
    """Land a window, and merge it."""
    env.sql(CHANGES.format(number))
    flush(env)
    env.capture()
    env.merge()


_numbers = itertools.count(1)


@pytest.mark.parametrize("case", slow(CASES, but=QUICK), ids=called)
def test_whatever_step_is_the_last_the_same_request_ends_it(env: PipelineEnv, case: tuple[str, str, str, int]) -> None:
    verb, step, when, occurrence = case
    number = next(_numbers)
    start_young(env)
    change(env, number)
    change(env, number + 300)
    before = readable(env)
    switched = step == Step.MERGE_PUBLISHED and when == "after"
    asked = f"{verb}:{','.join(TABLES)}"

    killed = run_with_spark(env, asked, step, when, str(occurrence))

    assert killed.returncode == -signal.SIGKILL, f"never reached: {killed.stderr[-2000:]}"
    if not switched:
        assert readable(env) == before, "readers have seen nothing"
        env.sql(CHANGES.format(number + 100))
        flush(env)
        env.capture()
        run_with_spark(env, asked, step, when, str(occurrence))  # this one finds what the first one left
    again(env, verb)
    follows(env)
    assert env.ctx.ledger.rebuilds.all(env.name) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", LOADING, ids=called)
def test_a_load_that_ends_between_files_and_commit_is_begun_again(env: PipelineEnv, step: Kill) -> None:
    start_young(env)
    change(env, next(_numbers))
    before = readable(env)

    killed = run(env, f"resync here:{','.join(TABLES)}", *map(str, step))

    assert killed.returncode == -signal.SIGKILL, f"never reached: {killed.stderr[-2000:]}"
    assert readable(env) == before, "readers have seen nothing"
    again(env, "resync")
    follows(env)
    assert env.ctx.ledger.rebuilds.all(env.name) == []


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
    equal(env)


def readable(env: PipelineEnv) -> dict[tuple[str, str], int | None]:
    """Return the snapshot that each name of the lake shows, tables on their way and those that made way left out.

    What a merge prepares makes a new metadata file, too, in which the name shows what it did.
    """
    names = env.ledger.execute(
        "select table_namespace, table_name from iceberg_tables where table_namespace in (%s, %s)",
        env.name,
        f"{env.name}.public",
    )
    shown = {}
    with lake_reader("lake", sql_catalog(env.ctx.catalog)) as reader:
        for namespace, table in names:
            found = reader.table((*namespace.split("."), table))
            assert found is not None
            snapshot = found.table.current_snapshot()
            shown[namespace, table] = snapshot and snapshot.snapshot_id
    return shown


@pytest.mark.slow
def test_a_merge_that_was_overtaken_cannot_switch_a_table(env: PipelineEnv) -> None:
    change(env, 50)
    ids = rebuild.resync(env.ctx, TABLES, env.submit)
    env.sql(CHANGES.format(51))
    flush(env)
    env.capture()  # as far as the copy's snapshot: before that there is nothing to switch to
    overtaken = merge.plan(env.ctx)
    assert overtaken is not None
    env.submit(merge.job(env.ctx, overtaken))
    newer = merge.plan(env.ctx)
    assert newer is not None
    env.submit(merge.job(env.ctx, newer))
    before = readable(env)

    late = run_with_spark(env, f"publish:{overtaken}")

    assert "ledger-conflict" in late.stderr
    assert readable(env) == before
    merge.publish(env.ctx, newer)
    assert {each.id for each in env.ctx.ledger.rebuilds.all(env.name, states=["done"])} >= set(ids)
    equal(env)
    follows(env)


@pytest.mark.slow
def test_a_switch_that_was_published_by_half_is_taken_over(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        postgres16.temporary_database("faults_rebuild_apart") as source,
        postgres16.temporary_database("faults_rebuild_apart_ledger") as ledger,
    ):
        env = begun(source, ledger, lake, spark, tmp_path_factory)
        change(env, 1)
        asked = f"resync:{','.join(TABLES)}"
        for step in (Step.POINTERS_MOVED_BY_REBUILD, Step.POINTERS_MOVED_BY_MERGE):
            killed = run_with_spark(env, asked, step, "after", "1")
            assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]

        env.merge(force=True)  # finds that the lake has moved

        assert {each.state for each in env.ctx.ledger.rebuilds.all(env.name, states=None)} == {"done"}
        equal(env)
        follows(env)


@pytest.mark.slow
def test_the_source_may_be_crashed_while_a_table_is_copied(
    new_server: NewServer,
    binaries16: Binaries,
    postgres16: Server,
    lake: LakeCatalog,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = new_server(binaries16, {"checkpoint_timeout": "1h"})
    with postgres16.temporary_database("faults_rebuild_crash") as ledger:
        env = begun(Database(server, "postgres"), ledger, lake, spark, tmp_path_factory)
        crashed = []

        def submit(job: object) -> None:
            if not crashed:
                crashed.append(job)
                server.stop(mode="immediate")
                server.start()
            env.submit(job)  # type: ignore[arg-type]

        with pytest.raises(Exception, match="snapshot"):
            rebuild.resync(env.ctx, TABLES, submit)
        env.sql(CHANGES.format(3))
        flush(env)

        again(env, "resync")
        follows(env)
    server.remove()


@pytest.mark.slow
def test_the_holder_of_the_snapshot_may_be_ended_after_some_tables_are_copied(env: PipelineEnv) -> None:
    change(env, 70)

    def submit(job: object) -> None:
        env.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name like '%:resync' and state = 'idle in transaction' and datname = current_database()"
        )
        env.submit(job)  # type: ignore[arg-type]

    with pytest.raises(Exception, match=r"snapshot|SparkException|Py4J"):
        rebuild.resync(env.ctx, TABLES, submit)
    env.sql(CHANGES.format(71))
    flush(env)

    again(env, "resync")
    follows(env)
