"""The policy's words: sound defaults, and refusals that say what is wrong. Pure."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.config.policy import Health
from penstock.units import size, span
from tests.flow.health.cases import policy

ROOT = Path(__file__).parents[2]


def test_nothing_is_dropped_by_default() -> None:
    assert Health().dry_run
    assert Health().drop.foreign == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"warn": {"share": 0.6}},
        {"warn": {"bytes": "2GiB"}, "critical": {"bytes": "1GiB"}},
        {"warn": {"share": 1.5}},
        {"hysteresis": 1},
        {"drop": {"foreign": [{"name": "x*"}]}},
        {"drop": {"foreign": [{"name": "", "inactive": "1d", "retained": "1GiB"}]}},
        {"critical": {"channels": ["https://hooks.example.com/secret"]}},
        {"dryrun": False},
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        policy(**wrong)


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (-2048, "-2.0 KiB"), (None, "unknown")]
)
def test_a_size_is_shown_as_a_person_reads_it(amount: Any, text: str) -> None:
    assert size(amount) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.6, "1 min"), (3661, "1 h 1 min"), (90000, "1 d 1 h"), (None, "unknown")]
)
def test_a_time_is_shown_in_its_two_largest_units(seconds: Any, text: str) -> None:
    assert span(seconds) == text
