"""What a typed column cannot hold is a misfit: the column is NULL, and the exact text stays next to it.

Because a cast gives NULL for nothing but NULL and misfits, one rule is enough for all types.
"""

from __future__ import annotations

from penstock.values.casts import cast_sql
from penstock.values.lake_types import STRING, mapping
from penstock.values.pgtype import PgType

MISFITS_COLUMN = "_misfits"


def misfit_sql(text: str, type: PgType, typed: str | None = None) -> str | None:
    """Return the Spark SQL condition that `text` is a misfit of its type; None where that cannot be.

    Pass the already cast column as `typed` to spare a second cast.
    """
    return misfit_of(text, mapping(type).lake_type, typed or f"({cast_sql(text, type)})")


def misfit_of(text: str, lake_type: str, typed: str) -> str | None:
    """Return the Spark SQL condition that `typed`, cast from `text`, lost a value; None where that cannot be."""
    return None if lake_type == STRING else f"({text} is not null and {typed} is null)"
