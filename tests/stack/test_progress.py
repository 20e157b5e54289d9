"""What a person sees of a step that takes long, on a terminal and in a log."""

import io
import threading

import pytest
from rich.console import Console

from stack.progress import Progress
from tests.waiting import wait_until


def written(*, terminal: bool = False) -> tuple[Progress, io.StringIO]:
    """A sequence of steps whose lines can be read, with the first reminder at once."""
    said = io.StringIO()
    console = Console(file=said, force_terminal=terminal, width=200, highlight=False, soft_wrap=True)
    return Progress(console, first_reminder=0.01), said


def test_a_log_is_told_what_a_long_step_waits_for_and_for_how_long() -> None:
    progress, said = written()

    with progress.step("Airflow") as step:
        step.say("waiting for scheduler")
        wait_until(lambda: said.getvalue().count("waiting for scheduler") >= 2)
        step.result = "http://there"

    *reminders, end = said.getvalue().splitlines()
    assert all(line.startswith("  … Airflow") and "(for " in line for line in reminders)
    assert end.startswith("✓ Airflow: http://there")


def test_a_log_is_told_less_and_less_often() -> None:
    progress, said = written()
    with progress.step("Airflow"):
        wait_until(lambda: said.getvalue().count("…") >= 6)

        assert said.getvalue().count("…") < 20, "pauses double: twenty would take hours"


def test_a_terminal_shows_one_line_that_changes() -> None:
    progress, said = written(terminal=True)

    with progress.step("Airflow") as step:
        step.say("waiting for scheduler")
        wait_until(lambda: "waiting for scheduler" in said.getvalue())

    assert "for 0 s" not in said.getvalue()
    assert said.getvalue().rstrip().splitlines()[-1].endswith("Airflow")


def test_a_step_that_fails_is_marked_and_nothing_goes_on_talking() -> None:
    progress, said = written()
    before = set(threading.enumerate())

    with pytest.raises(ValueError, match="no"), progress.step("Airflow"):
        raise ValueError("no")

    assert said.getvalue().splitlines()[-1] == "✗ Airflow"
    assert not set(threading.enumerate()) - before
