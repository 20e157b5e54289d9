"""What a verb prints is what it has to say: a slug in square brackets is no markup."""

import pytest

from penstock.cli import printing
from penstock.flow.check import Finding

SAID = "[slot-lost] gone"


def test_square_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    printing.show(SAID)
    printing.show_lines("shop: halted", [("halted", SAID)])
    printing.show_findings("shop", [Finding("error", "slot-lost", "slot", SAID, "look")])
    printing.say(SAID)

    printed = capsys.readouterr()
    assert (printed.out.count(SAID), printed.err) == (3, f"{SAID}\n")
