"""Every row of the table of what the stream says and what the mirror does, by the engine alone."""

import pytest

from tests.engine.folder_lake import FolderLake
from tests.spark import outcomes as scenario_outcomes
from tests.spark.outcomes import Outcome
from tests.spark.scenarios import SCENARIOS, Scenario


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    return scenario_outcomes.outcomes(FolderLake(tmp_path_factory.mktemp("lake")))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_table_is_what_the_stream_says(scenario: Scenario, outcomes: list[Outcome]) -> None:
    assert scenario_outcomes.end(scenario, outcomes) == scenario_outcomes.expected_end(scenario, outcomes)


def test_changes_that_met_no_row_or_one_too_many_are_counted_by_kind(outcomes: list[Outcome]) -> None:
    for names, counted, judged in scenario_outcomes.conflicts(outcomes):
        assert counted == judged, names
