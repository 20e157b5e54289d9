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
from tests.faults.steps import Step, called, slow
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
    (Step.SLOT_DROPPED, "after", 1),
]
OTHERS = [
    (Step.TEXT_WRITTEN, "after", 2),  # the result of the first table
    (Step.SLOT_CREATED, "after", 1),
    (Step.PIPELINE_HALTED, "after", 1),
    (Step.SLOT_DROPPED, "before", 1),
    (Step.ERA_BEGUN, "after", 1),
    (Step.SLOT_RECORDED, "after", 1),
    (Step.BOOTSTRAP_FINISHED, "after", 1),
    (Step.PIPELINE_HALTED, "before", 1),
    (Step.PUBLICATION_CREATED, "after", 1),
    (Step.ERA_BEGUN, "before", 1),
    (Step.SLOT_INTENDED, "before", 1),
    (Step.SLOT_INTENDED, "after", 1),
    (Step.TABLES_SAVED, "after", 1),
    (Step.COPY_STARTED, "after", 1),
    (Step.RANGE_LANDED, "after", 1),
    (Step.COPY_FINISHED, "after", 1),
    (Step.BOOTSTRAP_FINISHED, "before", 1),
]
PUBLISHING = [
    (Step.MERGE_PUBLISHED, "before"),
    (Step.MERGE_TABLES_ADVANCED, "after"),
    (Step.CUT_RECORDED, "after"),
    (Step.POINTERS_MOVED_BY_MERGE, "after"),
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
    recover.begin(env.ctx, recover.assess(env.ctx))
    recover.new_era(env.ctx)
    bootstrap.copy(env.ctx, copy_without_spark)
    attempt = merge.plan(env.ctx)
    assert attempt is not None
    env.submit(merge.job(env.ctx, attempt))
    before, cuts = readable(env), env.ctx.ledger.merges.cuts(env.name, limit=1000)

    for step, when in PUBLISHING:
        killed(env, f"publish:{attempt}", step, when, "1")
        assert (readable(env), env.ctx.ledger.merges.cuts(env.name, limit=1000)) == (before, cuts)
    killed(env, f"publish:{attempt}", Step.MERGE_PUBLISHED, "after", "1")
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
        recover.begin(env.ctx, recover.assess(env.ctx))
        attempt = merge.plan(env.ctx, last=True)
        assert attempt is not None
        env.submit(merge.job(env.ctx, attempt))
        killed(env, f"publish-last:{attempt}", Step.MERGE_PUBLISHED, when, "1")

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
    recover.begin(env.ctx, recover.assess(env.ctx))
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
        killed(env, f"publish:{attempt}", Step.POINTERS_MOVED_BY_MERGE, "after", "1")

        recover.begin(env.ctx, recover.assess(env.ctx))
        recover.new_era(env.ctx)
        assert attempt in {cut.attempt for cut in env.ctx.ledger.merges.cuts(env.name)}
        bootstrap.copy(env.ctx, copy_without_spark)
        attempt = merge.plan(env.ctx)
        assert attempt is not None
        env.submit(merge.job(env.ctx, attempt))
        killed(env, f"publish:{attempt}", Step.POINTERS_MOVED_BY_MERGE, "after", "1")

        follows(env)
        assert attempt in {cut.attempt for cut in env.ctx.ledger.merges.cuts(env.name)}
