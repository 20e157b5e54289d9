"""The library stays as light as its budgets (pyproject.toml, `tool.penstock.house`), and what is written once stays so."""

import ast
from collections.abc import Callable, Iterator

import pytest

from tests import house
from tests.order import HERE, LONGEST

MEASURED: dict[str, Callable[[], int]] = {
    "small_files": lambda: house.whole(house.rooms()).small,
    "files": lambda: len(house.whole(house.rooms()).files),
    "ledger_tables": lambda: len(house.ledger_tables()),
    "ledger_statements": house.ledger_statements,
    "dialect": lambda: len(house.dialect(house.whole(house.rooms()))),
    "test_lines": house.test_lines,
}
WRITTEN_ONCE = {
    "reconcile_alarms": {"flow/health/alarms.py"},
    "note_alert_sent": {"flow/health/alarms.py"},
    "MergePlan": {"flow/merge/run.py"},
}
"""Calls that one module makes: who else finds something, or wants something planned, hands it to that module."""


def test_every_room_of_the_library_stays_within_its_budget() -> None:
    allowed = house.budgets()
    found = {room.name: room.lines for room in house.rooms()}

    assert found.keys() - allowed.keys() == set(), "give the new room a budget in pyproject.toml"
    assert allowed.keys() - found.keys() == set(), "take the budget of the room that is gone out of pyproject.toml"
    over = {name: (lines, allowed[name]) for name, lines in found.items() if lines > allowed[name]}
    assert over == {}, "(lines, budget): make the room lighter, or raise its budget in the same commit, in sight"


@pytest.mark.parametrize("figure", MEASURED)
def test_a_figure_of_the_house_stays_within_its_budget(figure: str) -> None:
    assert MEASURED[figure]() <= house.limits()[figure]


def test_every_limit_is_measured() -> None:
    assert house.limits().keys() == MEASURED.keys()


@pytest.mark.parametrize("name", WRITTEN_ONCE)
def test_what_is_written_in_one_place_is_called_from_no_other(name: str) -> None:
    assert {path for path, called in _calls() if called == name} == WRITTEN_ONCE[name]


def _calls() -> Iterator[tuple[str, str]]:
    """Yield each call outside of the ledger: the module's path, the name of the class, the function or the method."""
    for room in house.rooms():
        for file in room.files if room.name != "ledger" else ():
            path = str(file.path.relative_to(house.LIBRARY))
            for node in ast.walk(file.tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                    yield path, node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id


# The list of the longest files names files that are there.


def test_every_file_that_is_sorted_to_the_front_exists_and_is_named_once() -> None:
    assert [name for name in LONGEST if not (HERE / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
