"""A change of a table's key with the process killed at every step around it: each change still meets its row, without a copy."""

import pytest

from penstock.flow.merge import run as merge
from tests.faults.conftest import NewPipeline
from tests.faults.harness import killed, killed_twice
from tests.faults.steps import Step, called
from tests.pipeline_env import PipelineEnv
from tests.scenarios.key_changes import KEYED, change_of_key

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CAPTURE = [
    Step.WINDOW_LOOK_NOTED,
    Step.WINDOW_PLANNED,
    Step.ROWS_WRITTEN,
    Step.WINDOW_STAGED,
    Step.SLOT_ADVANCED,
    Step.WINDOW_CONFIRMED,
]
PUBLISH = [Step.MERGE_PUBLISHED, Step.MERGE_TABLES_ADVANCED, Step.CUT_RECORDED, Step.POINTERS_MOVED_BY_MERGE]
CASES = [
    (verb, step, when, 1)
    for verb, steps in (("capture", CAPTURE), ("publish", PUBLISH))
    for step in steps
    for when in ("before", "after")
]


@pytest.fixture(scope="module")
def env(new_pipeline: NewPipeline) -> PipelineEnv:
    return new_pipeline("faults_key", KEYED)


@pytest.mark.parametrize("case", CASES, ids=called)
def test_whatever_step_is_the_last_each_change_meets_its_row(
    env: PipelineEnv, number: int, case: tuple[str, Step, str, int]
) -> None:
    verb, kill = case[0], case[1:]
    copied = env.copies()
    env.flush(change_of_key(env, number))
    if verb == "publish":
        env.capture()
        with merge.merge_lock(env.ctx):
            attempt = env.prepared(force=True)
        killed(env, f"publish:{attempt}", *kill)
    else:
        killed_twice(env, "capture", kill, lambda: env.sql(change_of_key(env, number + 20)))
    env.follow()
    assert env.wrong(copied) == []
