"""Constant SQL, kept as one statement per file in `include/sql` and read by name.

`penstock/statements` is the same folder within the package: a symbolic link in a checkout and in an image of one, files in
the zip that Spark receives. So the library looks in one place.
"""

from functools import cache
from importlib.resources import files

_STATEMENTS = files("penstock") / "statements"


@cache
def load(name: str) -> str:
    """Return the text of `include/sql/<name>.sql`; raises FileNotFoundError for an unknown name."""
    return _STATEMENTS.joinpath(*f"{name}.sql".split("/")).read_text(encoding="utf-8")


def names(folder: str) -> list[str]:
    """List the statements of one folder, sorted, as names that `load` takes."""
    found = (entry.name for entry in _STATEMENTS.joinpath(*folder.split("/")).iterdir())
    return sorted(f"{folder}/{name.removesuffix('.sql')}" for name in found if name.endswith(".sql"))
