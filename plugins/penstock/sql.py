"""Constant SQL, kept as one statement per file below `include/sql` and read by name.

In the zip that Spark receives the files lie in the package `penstock_sql`; in a checkout they lie in
`include/sql`. Both are read the same way.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path


@cache
def load(name: str) -> str:
    """Return the text of `include/sql/<name>.sql`; raises FileNotFoundError for an unknown name."""
    return _room().joinpath(*f"{name}.sql".split("/")).read_text(encoding="utf-8")


def names(folder: str) -> list[str]:
    """List the statements of one folder, sorted, as names that `load` takes."""
    found = (entry.name for entry in _room().joinpath(folder).iterdir())
    return sorted(f"{folder}/{name.removesuffix('.sql')}" for name in found if name.endswith(".sql"))


def _room() -> Traversable:
    if find_spec("penstock_sql") is not None:
        return files("penstock_sql")
    return Path(__file__).resolve().parents[2] / "include" / "sql"
