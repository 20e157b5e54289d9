"""The step at which a process is killed, by its name: `module:function`, when, and the how-manieth call of it.

Of many places only a few are tested by `make test`; their twins, the slow ones, by `make test-all`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

Step = tuple[str, str, int]

ZONE = "penstock.landing.zone:LandingZone"
WRITE_TEXT = f"{ZONE}.write_text"


def called(case: tuple[Any, ...]) -> str:
    """Name the test of a step, or of a verb and a step."""
    *verb, step, when, occurrence = case
    return " ".join([*verb, when, step.rpartition(":")[2], str(occurrence)])


def slow(cases: Iterable[tuple[Any, ...]], *, but: Collection[tuple[Any, ...]] = ()) -> list[Any]:
    """Mark the cases as slow, but those that are not."""
    return [case if case in but else pytest.param(case, marks=pytest.mark.slow) for case in cases]
