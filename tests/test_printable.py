"""Whoever shows a text of somebody else's shows it as one line that does nothing."""

import io
import json
import logging
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from penstock.cli import printing
from penstock.errors import SourceError
from penstock.printable import printable

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\nERROR all is lost\x9b31m\u202egnp\u2028\x00"
SAFE = r"\x1b]0;owned\x07\x1b[2J\x0d\x0aERROR all is lost\x9b31m\u202egnp\u2028\x00"


@given(st.text(st.characters()))
def test_nothing_that_is_shown_acts_and_whatever_is_only_seen_stays(text: str) -> None:
    shown = printable(text)

    acts = {"Cc", "Cs", "Zl", "Zp"}
    assert not [
        each
        for each in shown
        if unicodedata.category(each) in acts
        or unicodedata.bidirectional(each) in {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"}
    ]
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_names_of_all_scripts_stay() -> None:
    for name in (
        "größe",
        "日本語",
        "عربى",
        "עברית",
        "ไทย",
        "a b",
        'it"s',
        "e\u0301",
        "👩\u200d💻",
        "100%",
        "[bold]x[/bold]",
        "a\\b",
    ):
        assert printable(name) == name


def test_an_error_a_line_and_a_result_show_no_more_than_a_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = io.StringIO()
    monkeypatch.setattr(printing, "progress_console", lambda: Console(file=seen, force_terminal=True, highlight=False))
    printing.say(HOSTILE)
    printing.show(HOSTILE)
    printing.show_lines("title", [("label", HOSTILE)])
    printing.show_json({"name": HOSTILE})

    assert str(SourceError("source-error", f"expected {HOSTILE}")) == f"[source-error] expected {SAFE}"
    assert seen.getvalue() == f"{SAFE}\n"
    shown, _, said = capsys.readouterr().out.partition("{")
    assert shown == f"{SAFE}\ntitle\n  label  {SAFE}\n"
    assert json.loads("{" + said) == {"name": HOSTILE}, "a program gets the name itself"
    assert not [each for each in said if each != "\n" and unicodedata.category(each) == "Cc"]


@pytest.fixture
def tasks() -> Any:
    """A task's side of Airflow, which sets up logging when it is imported: before a test listens to it."""
    from penstock.orchestration import tasks  # noqa: PLC0415

    return tasks


def test_a_task_of_airflow_logs_a_name_in_one_line(tasks: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "penstock"):
        tasks._log(f"100% of {HOSTILE}")

    assert caplog.messages == [f"100% of {SAFE}"]
