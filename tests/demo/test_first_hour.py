"""The script that follows getting-started types what the page says, and nothing that is not on it."""

from pathlib import Path

from demo.first_hour import PAGE, READERS, SKIPPED_SECTIONS, blocks, script
from tests.pipeline_env import ROOT


def test_every_command_of_the_page_is_typed_in_its_order_with_the_readers_own_address() -> None:
    found = blocks((ROOT / PAGE).read_text())
    typed = [block for block in found if block.section not in SKIPPED_SECTIONS]

    said = script(typed, {"db.example.com": "127.0.0.1"}, Path("answers"))

    assert next(block.text for block in typed) == "make demo\n"
    places = [said.index(block.text.replace("db.example.com", "127.0.0.1")) for block in typed]
    assert places == sorted(places)
    assert "example.com" not in said
    assert [said.count(f"tee answers/{reader}") for reader in READERS] == [1, 1, 1]


def test_each_of_the_eight_steps_has_its_commands_or_leads_to_another_page() -> None:
    page = (ROOT / PAGE).read_text()
    steps = [line for line in page.splitlines() if line.startswith("### ")]

    assert [step.split()[1] for step in steps] == [f"{number}." for number in range(1, 9)]
    assert {step.removeprefix("### ") for step in steps} - {block.section for block in blocks(page)} == {
        "1. Prepare the source"
    }
