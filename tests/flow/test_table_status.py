"""A table stops in one place: by one statement of the ledger, which flow runs through `table_status` alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "plugins" / "penstock"

pytestmark = pytest.mark.unit


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(LIBRARY.rglob("*.py")):
        yield str(path.relative_to(LIBRARY)), ast.parse(path.read_text(encoding="utf-8"))


def calling(*names: str) -> set[str]:
    """Return the modules that call an attribute by its last two names, as `tables.stop`."""
    return {
        module
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ".".join(ast.unparse(node.func).split(".")[-2:]) in names
    }


def test_flow_stops_tables_and_what_is_built_of_them_in_one_module() -> None:
    assert calling("tables.stop", "rebuilds.give_up") == {"flow/table_status.py"}


def test_the_ledger_stops_tables_by_one_statement_in_one_method() -> None:
    naming = {
        module
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == "tables/stop_tables"
    }

    assert naming == {"ledger/tables.py"}
