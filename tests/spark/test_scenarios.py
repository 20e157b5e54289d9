"""Every row of the table of what the stream says and what the mirror does, on real Spark and a real catalog.

The tables of all scenarios are merged together, batch by batch: one application, tables in parallel, as it is
in life. A paused table must not disturb the others.
"""

import pytest

from tests.spark import outcomes as scenario_outcomes
from tests.spark.outcomes import Outcome
from tests.spark.scenarios import SCENARIOS, Scenario
from tests.spark.workbench import Workbench

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def outcomes(shared_workbench: Workbench) -> list[Outcome]:
    return scenario_outcomes.outcomes(shared_workbench)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_mirror_is_what_the_stream_says(scenario: Scenario, outcomes: list[Outcome]) -> None:
    assert scenario_outcomes.end(scenario, outcomes) == scenario_outcomes.expected_end(scenario, outcomes)


def test_changes_that_met_no_row_or_one_too_many_are_counted_by_kind(outcomes: list[Outcome]) -> None:
    for names, counted, judged in scenario_outcomes.conflicts(outcomes):
        assert counted == judged, names
