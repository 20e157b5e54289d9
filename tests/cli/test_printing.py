"""What a verb prints is what it has to say: a slug in square brackets is no markup."""

import pytest

from penstock.cli import printing
from penstock.flow.check import Finding
from penstock.units import sentence

SAID = "[slot-lost] gone"


def test_square_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    printing.show(SAID)
    printing.show_lines("shop: halted", [("halted", SAID)])
    printing.show_findings("shop", [Finding("error", "slot-lost", "slot", SAID, "look")])
    printing.say(SAID)

    printed = capsys.readouterr()
    assert (printed.out.count(SAID), printed.err) == (3, f"{SAID}\n")


LONG = 'alter publication "shop" add table ' + ", ".join(f'"shop"."a table, {number}"' for number in range(40)) + ";"
PLACE = "/opt/penstock/a :key: b/" + "very/deep/" * 20 + "shop.yaml"


@pytest.mark.parametrize("terminal", [True, False])
def test_sql_and_paths_can_be_pasted_from_any_terminal_and_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    printing.show_findings("shop", [Finding("error", "slot-lost", "publication", "it is not there", LONG)])
    printing.show_table(("pipeline", "file"), [("shop", PLACE)])
    printing.show_lines("shop", [("file", PLACE)])

    lines = capsys.readouterr().out.splitlines()

    assert [line for line in lines if LONG in line] == [f" next  {LONG}"]
    assert sum(PLACE in line for line in lines) == 2
    assert not any(set(line) & set("\u2502\u2503\u2500\u2501") for line in lines), "there is no box"


@pytest.mark.parametrize(
    ("said", "shown"),
    [("it is gone", "it is gone."), ("it is gone.", "it is gone."), ("is it?\n", "is it?"), ("", "")],
)
def test_a_sentence_ends_with_one_full_stop(said: str, shown: str) -> None:
    assert sentence(said) == shown
