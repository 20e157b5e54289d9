"""Measure the library's rooms against their budgets: `make house` prints the table, `test_house.py` holds it.

A room is a package of `plugins/penstock`, or a wing of `flow`. Whoever adds a capability raises the budget of one room by what
it needs, in the same commit; whoever makes a room lighter lowers it.
"""

import ast
import io
import re
import statistics
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "plugins" / "penstock"
STATEMENTS = ROOT / "include" / "sql" / "ledger"
SMALL = 60
"""A file below so many lines is counted as small."""
DIALECT = {"told", "brought", "heard", "doubt", "doubts"}
"""Words that name nothing: a stranger would not search for them."""


@dataclass(frozen=True)
class Source:
    """One Python file, measured."""

    path: Path

    @cached_property
    def text(self) -> str:
        """Return what the file says."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Return the file's syntax tree."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """Return how many lines the file has."""
        return self.text.count("\n")

    @cached_property
    def docstrings(self) -> int:
        """Return how many lines are docstrings, those of attributes among them."""
        strings = (
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        return sum(_height(node) for node in strings)

    @cached_property
    def code(self) -> int:
        """Return how many lines are neither blank, comment, docstring nor import."""
        lines = [line.strip() for line in self.text.splitlines()]
        empty = sum(1 for line in lines if not line or line.startswith("#"))
        imports = sum(_height(node) for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        blank_in_docstrings = sum(
            text.count("\n\n") for node in ast.walk(self.tree) if (text := _docstring(node)) is not None
        )
        return self.lines - empty - imports - self.docstrings + blank_in_docstrings

    def parameters(self) -> Iterator[tuple[str, int]]:
        """Yield each function with how many parameters it has, `self` and `cls` left out."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                yield node.name, sum(1 for argument in given if argument.arg not in {"self", "cls"})

    def names(self) -> Iterator[str]:
        """Yield each identifier of the file, as often as it stands there."""
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.NAME:
                yield token.string


@dataclass(frozen=True)
class Room:
    """The files of one package."""

    name: str
    files: tuple[Source, ...]

    @property
    def lines(self) -> int:
        """Return the lines of all files."""
        return sum(file.lines for file in self.files)

    @property
    def code(self) -> int:
        """Return the lines of code of all files."""
        return sum(file.code for file in self.files)

    @property
    def docstrings(self) -> int:
        """Return the lines of docstrings of all files."""
        return sum(file.docstrings for file in self.files)

    @property
    def small(self) -> int:
        """Return how many files are small; the empty `__init__.py` of a package is none."""
        return sum(1 for file in self.files if 0 < file.lines < SMALL)

    @property
    def median(self) -> int:
        """Return the median of the files' lines, empty ones left out."""
        return int(statistics.median([file.lines for file in self.files if file.lines] or [0]))


@cache
def rooms() -> list[Room]:
    """Return the rooms of the library, by name; the modules on top are the room `penstock`."""
    found: dict[str, list[Source]] = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        found.setdefault(_room_of(path), []).append(Source(path))
    return [Room(name, tuple(files)) for name, files in sorted(found.items())]


def budgets() -> dict[str, int]:
    """Return how many lines each room may have (pyproject.toml, `tool.penstock.house`)."""
    found: dict[str, int] = _settings()["rooms"]
    return found


def limits() -> dict[str, int]:
    """Return how large each other figure of the house may be, by name."""
    return {name: limit for name, limit in _settings().items() if name != "rooms"}


def whole(every: Iterable[Room]) -> Room:
    """Return all rooms as one."""
    return Room("library", tuple(file for room in every for file in room.files))


def dialect(library: Room) -> list[str]:
    """Return the identifiers that are made of a word that names nothing, as often as they stand in the code."""
    return [name for file in library.files for name in file.names() if DIALECT & set(_words(name))]


def ledger_tables() -> set[str]:
    """Return the tables of the ledger."""
    migrations = "\n".join(path.read_text(encoding="utf-8") for path in (STATEMENTS / "migrations").rglob("*.sql"))
    return set(re.findall(r"create table penstock\.\"?(\w+)", migrations))


def ledger_statements() -> int:
    """Return how many statements the ledger has beside its migrations."""
    return sum(1 for path in STATEMENTS.rglob("*.sql") if "migrations" not in path.parts)


def test_lines() -> int:
    """Return how many lines the tests have."""
    return sum(Source(path).lines for path in sorted((ROOT / "tests").rglob("*.py")))


def report() -> str:
    """Return the table of rooms, and the figures of the house as a whole."""
    every, allowed = rooms(), budgets()
    rows = [f"{'room':<20}{'files':>6}{'<60':>5}{'lines':>8}{'code':>8}{'docs':>6}{'median':>8}{'budget':>8}"]
    for room in (*every, whole(every)):
        budget = str(allowed.get(room.name, "")) if room.name != "library" else str(sum(allowed.values()) or "")
        share = f"{100 * room.docstrings / max(room.lines, 1):.0f}%"
        rows.append(
            f"{room.name:<20}{len(room.files):>6}{room.small:>5}{room.lines:>8}{room.code:>8}{share:>6}{room.median:>8}{budget:>8}"
        )
    library = whole(every)
    widest = [(count, name) for file in library.files for name, count in file.parameters() if count > 8]
    dataclasses = sum(len(re.findall(r"^\s*@dataclass", file.text, re.MULTILINE)) for file in library.files)
    strange = dialect(library)
    contracts = (ROOT / "pyproject.toml").read_text(encoding="utf-8").count("[[tool.importlinter.contracts]]")
    rows += [
        "",
        f"dataclasses                       {dataclasses}",
        f"functions above 8 parameters      {len(widest)}  {' '.join(f'{name}({count})' for count, name in sorted(widest))}",
        f"identifiers that name nothing     {len(strange)}  {' '.join(sorted(set(strange)))}",
        f"tables, statements of the ledger  {len(ledger_tables())}, {ledger_statements()}",
        f"contracts of imports              {contracts}",
        f"lines of tests                    {test_lines()}",
    ]
    return "\n".join(rows)


def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = settings["tool"]["penstock"]["house"]
    return found


def _room_of(path: Path) -> str:
    parts = path.relative_to(LIBRARY).parts[:-1]
    return "penstock" if not parts else "/".join(parts[:2] if parts[0] == "flow" else parts[:1])


def _height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring(node: ast.AST) -> str | None:
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _words(name: str) -> list[str]:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")


if __name__ == "__main__":
    print(report())  # noqa: T201 - it is what it is for
