"""`include/sql` and the code agree: no statement that no one runs, and no name without a statement.

A statement is named by a literal: `windows/plan_window` within the ledger's code, or whole, `source/peek/transactions`.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from penstock import package, sql

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "plugins" / "penstock"
STATEMENTS = ROOT / "include" / "sql"
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


READ = """
import penstock, sys
from penstock import sql
assert penstock.__file__.startswith(sys.argv[1]), penstock.__file__
print(sql.load("source/peek/transactions"), end="")
print(*sql.names("ledger/migrations/r0001"), sep="\\n", end="")
"""


def image(folder: Path) -> Path:
    """Copy the project as an image of it does: links stay links."""
    for part in ("plugins/penstock", "include/sql"):
        copytree(ROOT / part, folder / part, symlinks=True, ignore=ignore_patterns("__pycache__"))
    return folder / "plugins"


def packed(folder: Path) -> Path:
    """Pack the zip that Spark receives."""
    package.build(ROOT, folder / "penstock.zip")
    return folder / "penstock.zip"


@pytest.mark.parametrize("place", [lambda _: ROOT / "plugins", image, packed], ids=["checkout", "image", "zip"])
def test_a_checkout_an_image_and_the_zip_hold_the_same_statements(
    place: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = str(place(tmp_path))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONPATH": path}

    read = subprocess.run([sys.executable, "-c", READ, path], cwd="/", env=environment, capture_output=True, check=True)

    peek = (STATEMENTS / "source" / "peek" / "transactions.sql").read_text(encoding="utf-8")
    migration = sorted(path.stem for path in (STATEMENTS / "ledger" / "migrations" / "r0001").glob("*.sql"))
    assert read.stdout.decode() == peek + "\n".join(f"ledger/migrations/r0001/{name}" for name in migration)


def test_a_statement_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        sql.load("source/slot/no_such_statement")
