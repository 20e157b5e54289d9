"""The map next to a row that keeps, under their columns' names, the texts its typed columns cannot hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.lake.quoting import listing, literal
from penstock.values.misfits import misfit_of

_TYPE = "map<string,string>"
_NOTHING = f"cast(map() as {_TYPE})"


@dataclass(frozen=True, slots=True)
class CastColumn:
    """Name a column's text and its typed value of a lake type, both as Spark SQL."""

    name: str
    text: str
    typed: str
    type: str


def misfits_sql(columns: Sequence[CastColumn]) -> str:
    """Return the SQL of a row's misfits: a map<string,string>, NULL where everything fits.

    The map is built only for a row that needs one, so rows without misfits pay for a few NULL checks. Functions with a
    lambda are left out: Spark would not compile them together with the casts, and copy every row once more.
    """
    found = [(column, misfit_of(column.text, column.type, column.typed)) for column in columns]
    checks = [(column, check) for column, check in found if check is not None]
    if not checks:
        return f"cast(null as {_TYPE})"
    some = " or ".join(check for _, check in checks)
    entries = listing(
        f"case when {check} then map({literal(column.name)}, {column.text}) else {_NOTHING} end"
        for column, check in checks
    )
    return f"case when {some} then map_concat(\n  {entries}) end"
