"""Recovery killed between any two of its steps, again and again: run once more, source = lake.

One world serves all tests; each kill is at a pipeline that has just lost its place once more.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.flow.copy import bootstrap
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
    (WRITE_TEXT, "after", 2),  # the result of the first table
]
OTHERS = [
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
    ("penstock.ledger.merges:move", "after"),
]


@pytest.fixture(scope="module")
def world(
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


def lose_the_place(world: PipelineEnv, number: int) -> None:
    """Land a window, and consume the changes after it."""
    world.sql(CHANGES.format(number))
    flush(world)
    world.capture()
    world.sql(CHANGES.format(number + 100))
    consume(world)


def killed(world: PipelineEnv, verb: str, *step: str) -> None:
    outcome = run(world, verb, *step)
    assert outcome.returncode == -signal.SIGKILL, f"{step} was never reached: {outcome.stderr[-2000:]}"


_numbers = itertools.count(1)


@pytest.mark.parametrize("place", [*STEPS, *slow(OTHERS)], ids=called)
def test_whatever_step_is_the_last_the_next_run_ends_it(world: PipelineEnv, place: tuple[str, str, int]) -> None:
    number, (step, when, occurrence) = next(_numbers), place
    lose_the_place(world, number)
    before = readable(world)
    killed(world, "recover", step, when, str(occurrence))
    run(world, "recover", step, when, str(occurrence))  # this one finds what the first one left
    assert readable(world) == before, "the old tables stay at their cut"
    world.sql(CHANGES.format(number + 200))

    recovered(world)

    follows(world)


def readable(world: PipelineEnv) -> list[tuple[object, ...]]:
    """Return what each name of the lake shows, fresh tables and those of older eras left out."""
    return world.ledger.execute(
        "select table_namespace, table_name, metadata_location from iceberg_tables "
        "where table_namespace in (%s, %s) order by 1, 2",
        world.name,
        f"{world.name}.public",
    )


def test_the_switch_is_whole_or_not_at_all(world: PipelineEnv) -> None:
    lose_the_place(world, 60)
    recover.begin(world.ctx, recover.look(world.ctx))
    recover.new_era(world.ctx)
    bootstrap.copy(world.ctx, copy_without_spark)
    attempt = merge.plan(world.ctx)
    assert attempt is not None
    world.submit(merge.job(world.ctx, attempt))
    before, cuts = readable(world), world.ctx.ledger.merges.cuts(world.name, limit=1000)

    for step, when in PUBLISHING:
        killed(world, f"publish:{attempt}", step, when, "1")
        assert (readable(world), world.ctx.ledger.merges.cuts(world.name, limit=1000)) == (before, cuts)
    killed(world, f"publish:{attempt}", "penstock.ledger.merges:Merges.publish", "after", "1")
    after = readable(world)
    assert all(one != other for one, other in zip(before, after, strict=True))

    assert merge.publish(world.ctx, attempt).attempt == attempt
    assert readable(world) == after
    equal(world)
    follows(world)


@pytest.mark.slow
def test_the_last_merge_of_an_era_may_be_killed_too(world: PipelineEnv) -> None:
    for when in ("before", "after"):
        lose_the_place(world, 70)
        recover.begin(world.ctx, recover.look(world.ctx))
        attempt = merge.plan(world.ctx, last=True)
        assert attempt is not None
        world.submit(merge.job(world.ctx, attempt))
        killed(world, f"publish-last:{attempt}", "penstock.ledger.merges:Merges.publish", when, "1")

        recovered(world)

        follows(world)
        last = world.ctx.ledger.pipelines.get(world.name).era - 1
        position = world.ctx.ledger.pipelines.gaps(world.name)[0].from_lsn
        assert position in {cut.lsn for cut in world.ctx.ledger.merges.cuts(world.name) if cut.era == last}


@pytest.mark.slow
def test_a_merge_of_the_era_before_can_publish_nothing(world: PipelineEnv) -> None:
    lose_the_place(world, 80)
    overtaken = merge.plan(world.ctx)
    assert overtaken is not None
    world.submit(merge.job(world.ctx, overtaken))
    recover.begin(world.ctx, recover.look(world.ctx))
    recover.new_era(world.ctx)
    before = readable(world)

    killed_by_name = run(world, f"publish:{overtaken}")
    assert killed_by_name.returncode != 0
    assert "not-bootstrapped" in killed_by_name.stderr
    recovered(world)
    late = run(world, f"publish:{overtaken}")
    assert "ledger-conflict" in late.stderr

    assert readable(world) != before
    equal(world)
    follows(world)


@pytest.mark.slow
def test_a_merge_that_was_published_by_half_is_known_before_the_era_ends(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        postgres16.temporary_database("faults_recovery_apart") as source,
        postgres16.temporary_database("faults_recovery_apart_ledger") as ledger,
    ):
        world = PipelineEnv(
            source, ledger, tmp_path_factory.mktemp("apart") / "landing", source.name, lake=lake, spark=spark
        )
        world.settings = {"source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"}}
        world.sql(SHOP)
        world.bootstrap()
        lose_the_place(world, 1)
        attempt = merge.plan(world.ctx)
        assert attempt is not None
        world.submit(merge.job(world.ctx, attempt))
        killed(world, f"publish:{attempt}", "penstock.ledger.merges:move_elsewhere", "after", "1")

        recover.begin(world.ctx, recover.look(world.ctx))
        recover.new_era(world.ctx)
        assert attempt in {cut.attempt for cut in world.ctx.ledger.merges.cuts(world.name)}
        bootstrap.copy(world.ctx, copy_without_spark)
        attempt = merge.plan(world.ctx)
        assert attempt is not None
        world.submit(merge.job(world.ctx, attempt))
        killed(world, f"publish:{attempt}", "penstock.ledger.merges:move_elsewhere", "after", "1")

        follows(world)
        assert attempt in {cut.attempt for cut in world.ctx.ledger.merges.cuts(world.name)}
