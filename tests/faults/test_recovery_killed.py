"""Recovery killed between any two of its steps, again and again: run once more, source = lake.

One env serves all tests; each kill is at a pipeline that has just lost its place once more.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.flow.load import bootstrap
from penstock.flow.merge import run as merge
from penstock.flow.recover import run as recover
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.faults.conftest import run
from tests.faults.killed import copy_without_spark
from tests.faults.steps import WRITE_TEXT, called, slow
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import SHOP, consume, equal, flush, follows, recovered

pytestmark = pytest.mark.spark

CHANGES = """
update item set name = name || '+' where id % 4 = {0} % 4;
delete from item where id = (select max(id) from item);
insert into item select coalesce(max(id), 0) + 100, 'new', {0} from item;
delete from visit where ctid = (select ctid from visit limit 1);
insert into visit values ('page', {0}), ('page', {0});
"""
STEPS = [
    ("penstock.source.slot:drop", "after", 1),
]
OTHERS = [
    (WRITE_TEXT, "after", 2),  # the result of the first table
    ("penstock.source.slot:_create", "after", 1),
    ("penstock.ledger.pipelines:Pipelines.halt", "after", 1),
    ("penstock.source.slot:drop", "before", 1),
    ("penstock.ledger.pipelines:Pipelines.begin_era", "after", 1),
    ("penstock.ledger.pipelines:Pipelines.record_slot", "after", 1),
    ("penstock.ledger.pipelines:Pipelines.finish_bootstrap", "after", 1),
    ("penstock.ledger.pipelines:Pipelines.halt", "before", 1),
    ("penstock.source.publication:ensure", "after", 1),
    ("penstock.ledger.pipelines:Pipelines.begin_era", "before", 1),
    ("penstock.ledger.pipelines:Pipelines.intend_slot", "before", 1),
    ("penstock.ledger.pipelines:Pipelines.intend_slot", "after", 1),
    ("penstock.ledger.tables:Tables.save", "after", 1),
    ("penstock.ledger.tables:Tables.start_copy", "after", 1),
    ("penstock_spark.copy:land", "after", 1),
    ("penstock.ledger.tables:Tables.finish_copy", "after", 1),
    ("penstock.ledger.pipelines:Pipelines.finish_bootstrap", "before", 1),
]
PUBLISHING = [
    ("penstock.ledger.merges:Merges.publish", "before"),
    ("penstock.ledger.merges:_advance", "after"),
    ("penstock.ledger.merges:_record", "after"),
    ("penstock.ledger.merges:move_pointers", "after"),
]


@pytest.fixture(scope="module")
def env(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PipelineEnv]:
    """A pipeline whose ledger and catalog are one database, as by default: a cut is one transaction."""
    with postgres16.temporary_database("faults_recovery") as source:
        folder = tmp_path_factory.mktemp("faults_recovery")
        made = PipelineEnv(source, lake.database, folder / "landing", source.name, lake=lake, spark=spark)
        made.settings = {"source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"}}
        made.sql(SHOP)
        made.bootstrap()
        yield made


def lose_the_slot(env: PipelineEnv, number: int) -> None:
    """Land a window, and consume the changes after it."""
    env.sql(CHANGES.format(number))
    flush(env)
    env.capture()
    env.sql(CHANGES.format(number + 100))
    consume(env)


def killed(env: PipelineEnv, verb: str, *step: str) -> None:
    outcome = run(env, verb, *step)
    assert outcome.returncode == -signal.SIGKILL, f"{step} was never reached: {outcome.stderr[-2000:]}"


_numbers = itertools.count(1)


@pytest.mark.parametrize("place", [*STEPS, *slow(OTHERS)], ids=called)
def test_whatever_step_is_the_last_the_next_run_ends_it(env: PipelineEnv, place: tuple[str, str, int]) -> None:
    number, (step, when, occurrence) = next(_numbers), place
    lose_the_slot(env, number)
    before = readable(env)
    killed(env, "recover", step, when, str(occurrence))
    run(env, "recover", step, when, str(occurrence))  # this one finds what the first one left
    assert readable(env) == before, "the old tables stay at their cut"
    env.sql(CHANGES.format(number + 200))

    recovered(env)

    follows(env)


def readable(env: PipelineEnv) -> list[tuple[object, ...]]:
    """Return what each name of the lake shows, fresh tables and those of older eras left out."""
    return env.ledger.execute(
        "select table_namespace, table_name, metadata_location from iceberg_tables "
        "where table_namespace in (%s, %s) order by 1, 2",
        env.name,
        f"{env.name}.public",
    )


def test_the_switch_is_whole_or_not_at_all(env: PipelineEnv) -> None:
    lose_the_slot(env, 60)
    recover.begin(env.ctx, recover.look(env.ctx))
    recover.new_era(env.ctx)
    bootstrap.copy(env.ctx, copy_without_spark)
    attempt = merge.plan(env.ctx)
    assert attempt is not None
    env.submit(merge.job(env.ctx, attempt))
    before, cuts = readable(env), env.ctx.ledger.merges.cuts(env.name, limit=1000)

    for step, when in PUBLISHING:
        killed(env, f"publish:{attempt}", step, when, "1")
        assert (readable(env), env.ctx.ledger.merges.cuts(env.name, limit=1000)) == (before, cuts)
    killed(env, f"publish:{attempt}", "penstock.ledger.merges:Merges.publish", "after", "1")
    after = readable(env)
    assert all(one != other for one, other in zip(before, after, strict=True))

    assert merge.publish(env.ctx, attempt).attempt == attempt
    assert readable(env) == after
    equal(env)
    follows(env)


@pytest.mark.slow
def test_the_last_merge_of_an_era_may_be_killed_too(env: PipelineEnv) -> None:
    for when in ("before", "after"):
        lose_the_slot(env, 70)
        recover.begin(env.ctx, recover.look(env.ctx))
        attempt = merge.plan(env.ctx, last=True)
        assert attempt is not None
        env.submit(merge.job(env.ctx, attempt))
        killed(env, f"publish-last:{attempt}", "penstock.ledger.merges:Merges.publish", when, "1")

        recovered(env)

        follows(env)
        last = env.ctx.ledger.pipelines.get(env.name).era - 1
        position = env.ctx.ledger.pipelines.gaps(env.name)[0].from_lsn
        assert position in {cut.lsn for cut in env.ctx.ledger.merges.cuts(env.name) if cut.era == last}


@pytest.mark.slow
def test_a_merge_of_the_era_before_can_publish_nothing(env: PipelineEnv) -> None:
    lose_the_slot(env, 80)
    overtaken = merge.plan(env.ctx)
    assert overtaken is not None
    env.submit(merge.job(env.ctx, overtaken))
    recover.begin(env.ctx, recover.look(env.ctx))
    recover.new_era(env.ctx)
    before = readable(env)

    killed_by_name = run(env, f"publish:{overtaken}")
    assert killed_by_name.returncode != 0
    assert "not-bootstrapped" in killed_by_name.stderr
    recovered(env)
    late = run(env, f"publish:{overtaken}")
    assert "ledger-conflict" in late.stderr

    assert readable(env) != before
    equal(env)
    follows(env)


@pytest.mark.slow
def test_a_merge_that_was_published_by_half_is_known_before_the_era_ends(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        postgres16.temporary_database("faults_recovery_apart") as source,
        postgres16.temporary_database("faults_recovery_apart_ledger") as ledger,
    ):
        env = PipelineEnv(
            source, ledger, tmp_path_factory.mktemp("apart") / "landing", source.name, lake=lake, spark=spark
        )
        env.settings = {"source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"}}
        env.sql(SHOP)
        env.bootstrap()
        lose_the_slot(env, 1)
        attempt = merge.plan(env.ctx)
        assert attempt is not None
        env.submit(merge.job(env.ctx, attempt))
        killed(env, f"publish:{attempt}", "penstock.ledger.merges:move_pointers", "after", "1")

        recover.begin(env.ctx, recover.look(env.ctx))
        recover.new_era(env.ctx)
        assert attempt in {cut.attempt for cut in env.ctx.ledger.merges.cuts(env.name)}
        bootstrap.copy(env.ctx, copy_without_spark)
        attempt = merge.plan(env.ctx)
        assert attempt is not None
        env.submit(merge.job(env.ctx, attempt))
        killed(env, f"publish:{attempt}", "penstock.ledger.merges:move_pointers", "after", "1")

        follows(env)
        assert attempt in {cut.attempt for cut in env.ctx.ledger.merges.cuts(env.name)}
