"""What the preflight is told about the pipeline: its schedule, and whether a slot that exists is its own."""

import pytest

from penstock.config.policy import Health
from penstock.flow import check
from penstock.flow.check import seconds_between
from stack.servers.postgres import Database, Server
from tests.pipeline_env import PipelineEnv

NO_ONE = (
    "expected channels that notify a person, got none for the level warn and critical: these alarms are only in the "
    "ledger, in the log of slot_health and on the page"
)


@pytest.mark.parametrize(
    ("health", "level", "without_channel"),
    [
        ({}, "warn", ("warn", "critical")),
        ({"critical": {"channels": ["pager"]}}, "warn", ("warn",)),
        (
            {"warn": {"channels": ["chat"]}, "critical": {"channels": ["pager"]}, "schedule": None},
            "warn",
            ("warn", "critical"),
        ),
        ({"warn": {"channels": ["chat"]}, "critical": {"channels": ["pager"]}}, "ok", ()),
    ],
)
def test_the_check_says_of_which_alarms_no_person_is_notified(
    health: dict[str, object], level: str, without_channel: tuple[str, ...]
) -> None:
    policy = Health.model_validate(health)

    assert (check.notified(policy).level, policy.without_channel) == (level, without_channel)
    assert all(f"health.{each}.channels" in str(check.notified(policy).next_step) for each in without_channel)


@pytest.mark.parametrize(
    ("schedule", "seconds"), [("* * * * *", 60), ("*/20 * * * *", 1200), ("0 6 * * 1-5", 259200), (None, None)]
)
def test_the_longest_pause_of_a_schedule_counts(schedule: str | None, seconds: int | None) -> None:
    assert seconds_between(schedule) == seconds


def test_a_pipeline_that_has_its_slot_passes_the_check_again(
    database16: Database, postgres16: Server, tmp_path: object
) -> None:
    with postgres16.temporary_database(f"ledger_{database16.name}") as ledger:
        env = PipelineEnv(database16, ledger, tmp_path, f"c_{database16.name}")  # type: ignore[arg-type]
        env.sql("create table t (id int primary key)")
        assert NO_ONE in [finding.message for finding in check.require(env.ctx)]  # which bootstrap prints

        env.begin()

        assert [finding for finding in check.require(env.ctx) if finding.level == "error"] == []
