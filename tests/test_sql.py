"""`include/sql` and the code agree: no statement that no one runs, and no name without a statement.

A statement is named by a literal: `windows/plan_window` within the ledger's code, or whole, `source/peek/transactions`.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from penstock import sql

LIBRARY = Path(__file__).parents[1] / "plugins" / "penstock"
STATEMENTS = Path(__file__).parents[1] / "include" / "sql"
ROOMS = ("source", "ledger")


def statements() -> set[str]:
    """Return the names of all statements but the migrations', which are run by folder."""
    found = {str(path.relative_to(STATEMENTS).with_suffix("")) for path in STATEMENTS.rglob("*.sql")}
    return {name for name in found if not name.startswith("ledger/migrations/")}


@cache
def literals() -> list[tuple[Path, str]]:
    """Return the module and the text of each literal that looks like a statement's name."""
    return [
        (path.relative_to(LIBRARY), node.value)
        for path in LIBRARY.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[a-z_]+(/\w+){1,2}", node.value)
    ]


def whole(module: Path, literal: str) -> str | None:
    """Return the statement that a literal names, None where its folder holds no statements; flow speaks to the source."""
    room = module.parts[0] if module.parts[0] in ROOMS else "source"
    for name in (literal, f"{room}/{literal}"):
        folder = name.rpartition("/")[0]
        if folder not in ROOMS and any((STATEMENTS / folder).glob("*.sql")):
            return name
    return None


def test_every_statement_is_named_in_the_code_of_its_room() -> None:
    named = {(module.parts[0], whole(module, literal)) for module, literal in literals()}

    assert len(statements()) > 100
    assert sorted(name for name in statements() if (name.partition("/")[0], name) not in named) == []


def test_every_named_statement_exists() -> None:
    named = [(module, whole(module, literal)) for module, literal in literals()]
    missing = {str(module): name for module, name in named if name and not (STATEMENTS / f"{name}.sql").is_file()}

    assert {module: name for module, name in missing.items() if not name.startswith("ledger/migrations")} == {}


def test_every_folder_of_statements_is_called_like_the_module_that_runs_them() -> None:
    folders = {name.rpartition("/")[0] for name in statements()}

    assert [
        folder
        for folder in sorted(folders)
        if not (LIBRARY / f"{folder}.py").is_file() and not (LIBRARY / folder / "__init__.py").is_file()
    ] == []


def test_a_statement_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        sql.load("source/slot/no_such_statement")
