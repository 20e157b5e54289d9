"""Recovery killed between any two of its steps, again and again: run once more, source = lake.

One env serves all tests; each kill is at a pipeline that has just lost its place once more.
"""

import pytest

from penstock.flow.load import bootstrap
from penstock.flow.merge import run as merge
from penstock.flow.recover import run as recover
from tests.faults.conftest import NewPipeline
from tests.faults.harness import cut, killed, killed_twice, killed_unseen, pointers, run
from tests.faults.steps import Kill, Step, called, slow
from tests.pipeline_env import PipelineEnv, copy_without_spark
from tests.scenarios.recovery import CHANGES, SHOP, consume, follows, recovered

pytestmark = pytest.mark.spark

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
    (Step.READ_STARTED, "after", 1),
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
def env(new_pipeline: NewPipeline) -> PipelineEnv:
    return new_pipeline("faults_recovery", SHOP)


def lose_the_slot(env: PipelineEnv, number: int) -> None:
    """Land a window, and consume the changes after it."""
    env.land(CHANGES.format(number))
    env.sql(CHANGES.format(number + 100))
    consume(env)


@pytest.mark.parametrize("place", [*STEPS, *slow(OTHERS)], ids=called)
def test_whatever_step_is_the_last_the_next_run_ends_it(env: PipelineEnv, number: int, place: Kill) -> None:
    lose_the_slot(env, number)
    before = pointers(env)
    killed_twice(env, "recover", place, lambda: None)
    assert pointers(env) == before, "the old tables stay at their cut"
    env.sql(CHANGES.format(number + 200))

    recovered(env)

    follows(env)


def begin_a_new_era(env: PipelineEnv) -> None:
    recover.begin(env.ctx, recover.assess(env.ctx))
    recover.new_era(env.ctx)


def test_the_switch_is_whole_or_not_at_all(env: PipelineEnv) -> None:
    lose_the_slot(env, 60)
    begin_a_new_era(env)
    bootstrap.copy(env.ctx, copy_without_spark)
    attempt = env.prepared()
    before = pointers(env)

    killed_unseen(env, f"publish:{attempt}", PUBLISHING, cut)
    killed(env, f"publish:{attempt}", Step.MERGE_PUBLISHED, "after")
    after = pointers(env)
    assert after.keys() == before.keys()
    assert all(after[name] != before[name] for name in before)

    assert merge.publish(env.ctx, attempt).attempt == attempt
    assert pointers(env) == after
    assert env.unlike() == []
    follows(env)


@pytest.mark.slow
def test_the_last_merge_of_an_era_may_be_killed_too(env: PipelineEnv) -> None:
    for when in ("before", "after"):
        lose_the_slot(env, 70)
        recover.begin(env.ctx, recover.assess(env.ctx))
        attempt = env.prepared(last=True)
        killed(env, f"publish-last:{attempt}", Step.MERGE_PUBLISHED, when)

        recovered(env)

        follows(env)
        last = env.ctx.ledger.pipelines.get(env.name).era - 1
        position = env.ctx.ledger.pipelines.gaps(env.name)[0].from_lsn
        assert position in {cut.lsn for cut in env.ctx.ledger.merges.cuts(env.name) if cut.era == last}


@pytest.mark.slow
def test_a_merge_of_the_era_before_can_publish_nothing(env: PipelineEnv) -> None:
    lose_the_slot(env, 80)
    overtaken = env.prepared()
    begin_a_new_era(env)
    before = pointers(env)

    killed_by_name = run(env, f"publish:{overtaken}")
    assert killed_by_name.returncode != 0
    assert "not-bootstrapped" in killed_by_name.stderr
    recovered(env)
    late = run(env, f"publish:{overtaken}")
    assert "ledger-conflict" in late.stderr

    assert pointers(env) != before
    assert env.unlike() == []
    follows(env)


@pytest.mark.slow
def test_a_merge_that_was_published_by_half_is_known_before_the_era_ends(new_pipeline: NewPipeline) -> None:
    env = new_pipeline("faults_recovery_apart", SHOP, apart=True)
    lose_the_slot(env, 1)
    attempt = env.prepared()
    killed(env, f"publish:{attempt}", Step.POINTERS_MOVED_BY_MERGE, "after")

    begin_a_new_era(env)
    assert attempt in {cut.attempt for cut in env.ctx.ledger.merges.cuts(env.name)}
    bootstrap.copy(env.ctx, copy_without_spark)
    attempt = env.prepared()
    killed(env, f"publish:{attempt}", Step.POINTERS_MOVED_BY_MERGE, "after")

    follows(env)
    assert attempt in {cut.attempt for cut in env.ctx.ledger.merges.cuts(env.name)}
