"""Each step at which tests kill a process is a function that exists."""

import pytest

from tests.faults.steps import Step, owner


@pytest.mark.parametrize("step", Step, ids=lambda step: step.spoken)
def test_each_step_is_a_function_of_ours(step: Step) -> None:
    found, name = owner(step)
    assert callable(getattr(found, name))
