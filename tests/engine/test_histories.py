"""Every row of the table of what the stream says, and hundreds of random histories, split into batches anywhere, against the judge.

By the engine alone: by one task, and by many, which must lead to the same.
"""

import random

import pytest

from penstock.engine.task import Shape
from tests.engine.folder_lake import FolderLake
from tests.spark import merged_histories
from tests.spark import outcomes as scenario_outcomes
from tests.spark.outcomes import Outcome
from tests.spark.scenarios import SCENARIOS, Scenario

ONE = pytest.param(None, id="by one task")
MANY = pytest.param(Shape(3, 2, 2), marks=pytest.mark.slow, id="by many tasks")
HISTORIES = {"seed": 20260, "histories": 300, "per_batch": 600}
FEWER = {"seed": 20262, "histories": 150, "per_batch": 300}


@pytest.fixture(scope="module", params=[ONE, MANY])
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    return scenario_outcomes.outcomes(FolderLake(tmp_path_factory.mktemp("lake"), shape=request.param))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_table_is_what_the_stream_says(scenario: Scenario, outcomes: list[Outcome]) -> None:
    assert scenario_outcomes.end(scenario, outcomes) == scenario_outcomes.expected_end(scenario, outcomes)


def test_changes_that_met_no_row_or_one_too_many_are_counted_by_kind(outcomes: list[Outcome]) -> None:
    for names, counted, judged in scenario_outcomes.conflicts(outcomes):
        assert counted == judged, names


@pytest.mark.parametrize("full", [False, True], ids=["with the key as old image", "with the row as old image"])
@pytest.mark.parametrize(
    ("shape", "histories"),
    [
        pytest.param(None, HISTORIES, id="by one task"),
        pytest.param(Shape(3, 1, 2), FEWER, marks=pytest.mark.slow, id="keys over tasks"),
        pytest.param(Shape(1, 3, 3), FEWER, marks=pytest.mark.slow, id="data files over tasks"),
        pytest.param(Shape(3, 2, 1), FEWER, id="both"),
    ],
)
def test_random_histories_of_keyed_tables_end_as_the_judge_says(
    folder_lake: FolderLake, shape: Shape | None, histories: dict[str, int], full: bool
) -> None:
    folder_lake.shape = shape

    for batch in merged_histories.keyed(folder_lake, **histories, batches=3, full=full):
        assert batch.found == batch.expected, batch.name


@pytest.mark.parametrize(
    ("shape", "seed"), [(None, 20261), (Shape(2, 2, 2), 20263)], ids=["by one task", "by many tasks"]
)
def test_random_histories_of_tables_without_a_key_end_as_the_judge_says(
    folder_lake: FolderLake, shape: Shape | None, seed: int
) -> None:
    folder_lake.shape = shape

    for batch in merged_histories.bag(folder_lake, seed, histories=60, batches=3, per_batch=400):
        assert batch.found == batch.expected, batch.name


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(10))
def test_thousands_of_fresh_random_histories_end_as_the_judge_says(folder_lake: FolderLake, round_: int) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    for batch in merged_histories.keyed(
        folder_lake, seed, histories=500, batches=5, per_batch=1500, full=round_ % 3 == 2
    ):
        assert batch.found == batch.expected, batch.name
    folder_lake.tables.clear()
    for batch in merged_histories.bag(folder_lake, seed, histories=200, batches=3, per_batch=1500):
        assert batch.found == batch.expected, batch.name
