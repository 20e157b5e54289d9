"""Real `spark-submit` applications whose JVM is killed in the middle: the run fails by name, the next one is exact."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import LakeError
from penstock.flow.load import bootstrap
from penstock.flow.maintain import run as maintain
from penstock.flow.merge import run as merge
from penstock.flow.spark_job import SparkJob, Submit
from penstock.flow.verify.compare import compare
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.env_fixtures import RealSubmit
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv, copy_without_spark

pytestmark = pytest.mark.slow

_log = logging.getLogger(__name__)

TABLES = """
create table item (id int primary key, name text, note text);
create table sale (id int primary key, name text, note text);
create table visit (page text, n int);
alter table visit replica identity full;
insert into item select n, 'item ' || n, repeat('i', 200) from generate_series(1, 2000) n;
insert into sale select n, 'sale ' || n, repeat('s', 200) from generate_series(1, 2000) n;
insert into visit select 'page ' || n % 3, n from generate_series(1, 500) n;
"""
CHANGES = """
update item set name = name || '+' where id % 5 = 1; delete from item where id % 7 = 1;
update sale set id = -id where id % 5 = 2; insert into sale values (5000, 'new', null);
delete from visit where n % 5 = 3; update visit set n = n + 1000 where n % 5 = 4;
"""


@pytest.fixture
def env(postgres16: Server, lake: LakeCatalog, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PipelineEnv]:
    name = f"spark_killed_{request.node.name[5:20]}"
    with (
        postgres16.temporary_database(name) as source,
        postgres16.temporary_database(f"{name}_ledger") as ledger,
    ):
        made = PipelineEnv(source, ledger, tmp_path / "landing", name, lake)
        made.settings = {
            "copy": {"range_bytes": "64KiB", "parallel": 1},
            "spark": {"driver_memory": "1g", "parallel_tables": 1},
        }
        made.sql(TABLES)
        bootstrap.prepare(made.ctx)
        yield made


@pytest.fixture
def submitting(real_submit: RealSubmit) -> Callable[..., Submit]:
    """A function that returns a way to submit; with `last_words` the JVM is killed once it has said them."""

    def submit(job: SparkJob, last_words: str | None) -> None:
        def listen(line: str) -> None:
            _log.info(line)
            if last_words is not None and last_words in line:
                kill_jvm(job)

        real_submit(listen)(job)
        assert last_words is None, "the application was never killed"

    return lambda last_words=None: lambda job: submit(job, last_words)


def kill_jvm(job: SparkJob) -> None:
    """Kill the JVM of a job with SIGKILL, as the kernel does when memory runs out; it is known by its plan."""
    plan = job.arguments[1]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if b"org.apache.spark.deploy.SparkSubmit" in command and plan.encode() in command:
            os.kill(int(process.parent.name), signal.SIGKILL)


def test_a_copy_whose_jvm_is_killed_continues_exactly(env: PipelineEnv, submitting: Callable[..., Submit]) -> None:
    with pytest.raises(LakeError, match="spark-failed"):
        bootstrap.copy(env.ctx, submitting("public.sale: "))  # its first words on the second table
    finished = {copied.oid: copied.copy_id for copied in env.ctx.ledger.loads.copies(env.name, state="ready")}
    env.sql(CHANGES)

    bootstrap.copy(env.ctx, submitting())

    copies = {copied.oid: copied.copy_id for copied in env.ctx.ledger.loads.copies(env.name, state="ready")}
    assert len(finished) in (1, 2), "it was killed in the middle"
    assert len(copies) == 3
    assert finished.items() <= copies.items()
    env.land("set synchronous_commit = on; update item set note = 'late' where id = 2")
    for table in ("item", "sale"):
        assert landed(env, table, "id") == at_source(env, table, "id")


def test_a_merge_whose_jvm_is_killed_is_merged_again(env: PipelineEnv, submitting: Callable[..., Submit]) -> None:
    bootstrap.copy(env.ctx, copy_without_spark)
    env.land(f"set synchronous_commit = on; {CHANGES}")

    killed = env.plan()
    with pytest.raises(LakeError, match="spark-failed"):
        submitting("public.item: ")(merge.job(env.ctx, killed))
    with pytest.raises(LakeError, match="spark-failed"):
        merge.publish(env.ctx, killed)

    merged(env, submitting())
    found = compare(env.ctx)
    assert found.equal, [line for table in found.tables for line in table.lines()]
    assert found.rows > 4000


def test_a_maintenance_whose_jvm_is_killed_between_two_tables_is_ended_by_the_next(
    env: PipelineEnv, submitting: Callable[..., Submit]
) -> None:
    bootstrap.copy(env.ctx, copy_without_spark)
    for _ in range(2):
        env.land(f"set synchronous_commit = on; {CHANGES}; delete from sale where id = 5000")
        merged(env, submitting())

    with pytest.raises(LakeError, match="spark-failed"):
        maintain.maintain(env.ctx, submitting("public.item: files"))
    assert env.unlike() == []
    env.land(f"set synchronous_commit = on; {CHANGES}")
    merged(env, submitting())
    report = maintain.maintain(env.ctx, submitting())

    assert report is not None
    assert {table.left for table in report.lake.tables} == {None}
    assert sum(table.after.delete_files for table in report.lake.tables if table.after) == 0
    found = compare(env.ctx)
    assert found.equal, [line for table in found.tables for line in table.lines()]
    assert found.rows > 4000


def merged(env: PipelineEnv, submit: Submit) -> None:
    attempt = env.plan()
    submit(merge.job(env.ctx, attempt))
    merge.publish(env.ctx, attempt)
