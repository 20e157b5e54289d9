"""A fill of the changelogs killed between any two of its steps: once more, and the interval is what the source did."""

from typing import Any

import pytest

from penstock.flow.changelog import run as changelog
from penstock.flow.changelog.coverage import Interval
from tests.faults.conftest import NewPipeline
from tests.faults.harness import killed, killed_unseen, pointers
from tests.faults.steps import Step
from tests.pipeline_env import PipelineEnv
from tests.scenarios.changelogs import begin, flush, holds, now

pytestmark = pytest.mark.spark

PLANNING = [
    (Step.INTERVAL_LOCKED, "before"),
    (Step.INTERVAL_WORK_FOUND, "after"),
    (Step.TEXT_WRITTEN, "before"),
    (Step.TEXT_WRITTEN, "after"),
]
SETTLING = [
    (Step.INTERVAL_FILLED, "before"),
    (Step.CHANGELOGS_LOCKED, "after"),
    (Step.POINTERS_MOVED_BY_CHANGELOG, "before"),
    (Step.POINTERS_MOVED_BY_CHANGELOG, "after"),
]
ALL_STEPS = pytest.param(PLANNING, SETTLING, marks=pytest.mark.slow, id="at each step")
LAST_STEPS = pytest.param(PLANNING[-1:], SETTLING[-1:], id="at the last of either")


@pytest.fixture(scope="module")
def watched(new_pipeline: NewPipeline) -> tuple[PipelineEnv, str]:
    env = new_pipeline("faults_changelog")
    return env, begin(env)


def interval(env: PipelineEnv, key: int) -> Interval:
    """Let the source do something in two tables, in an interval of its own."""
    start = now(env)
    env.sql(f"insert into keyed (id, name) values ({key}, 'new'); insert into keyless values ('page', {key})")
    env.sql(f"update keyed set name = 'changed' where id = {key}; delete from keyless")
    flush(env)
    end = now(env)
    flush(env)
    return Interval(start, end)


def shown(env: PipelineEnv) -> tuple[object, ...]:
    """Return what every reader sees: the changelogs' pointers, and the intervals that count as filled."""
    return pointers(env), [fill.attempt for fill in env.ctx.ledger.changelogs.fills(env.name)]


@pytest.mark.slow
@pytest.mark.parametrize(("planning", "settling"), [LAST_STEPS, ALL_STEPS])
def test_a_fill_killed_while_it_is_planned_or_settled_shows_nothing_and_is_done_by_the_next(
    watched: tuple[PipelineEnv, str], planning: list[tuple[str, str]], settling: list[tuple[str, str]]
) -> None:
    env, slot = watched
    first, second = interval(env, 10 * len(planning)), interval(env, 10 * len(planning) + 1)
    env.changelog(first.start, first.end)

    killed_unseen(env, f"fill:{second.start.isoformat()}/{second.end.isoformat()}", planning, shown)
    attempt = changelog.plan(env.ctx, second)
    env.submit(changelog.job(env.ctx, attempt))
    killed_unseen(env, f"settle:{attempt}", settling, shown)
    env.changelog(second.start, second.end)

    for each in (first, second):
        assert holds(env, slot, "keyed", each.start, each.end) == ["I", "U"]
        assert holds(env, slot, "keyless", each.start, each.end) == ["I", "D"]


@pytest.mark.slow
def test_a_fill_killed_after_its_commit_was_done_and_may_be_done_again(watched: tuple[PipelineEnv, str]) -> None:
    env, slot = watched
    third = interval(env, 3)
    attempt = changelog.plan(env.ctx, third)
    env.submit(changelog.job(env.ctx, attempt))

    killed(env, f"settle:{attempt}", Step.INTERVAL_FILLED, "after")

    assert env.ctx.ledger.changelogs.fills(env.name, limit=1)[0].attempt == attempt
    assert holds(env, slot, "keyed", third.start, third.end) == ["I", "U"]
    changelog.publish(env.ctx, attempt)
    env.changelog(third.start, third.end)
    assert holds(env, slot, "keyed", third.start, third.end) == ["I", "U"]


@pytest.mark.slow
def test_a_spark_run_killed_between_its_tables_leaves_the_interval_to_the_next(
    watched: tuple[PipelineEnv, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_spark import changelog as application  # noqa: PLC0415  # with Spark's session only

    env, slot = watched
    fourth = interval(env, 4)
    before = env.ctx.ledger.changelogs.fills(env.name)
    fill_table = application.fill_table

    def ends(session: Any, plan: Any, order: Any, *rest: Any) -> Any:
        result = fill_table(session, plan, order, *rest)
        if order.target[-1].startswith("keyed"):
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patched:
        patched.setattr(application, "fill_table", ends)
        with pytest.raises(KeyboardInterrupt):
            env.changelog(fourth.start, fourth.end)
    assert env.ctx.ledger.changelogs.fills(env.name) == before
    env.changelog(fourth.start, fourth.end)

    assert holds(env, slot, "keyed", fourth.start, fourth.end) == ["I", "U"]
    assert holds(env, slot, "keyless", fourth.start, fourth.end) == ["I", "D"]
