"""Columns whose text is the name of another object: `regclass` and its kin, `aclitem`, and whatever is made of these. Pure.

The server stores a number, and writes the name that the object has at that moment. When it is renamed or dropped, rows of before
show another text at the source, and nothing of that is in the stream. So rows must not be told apart by such a text.
"""

from collections.abc import Iterable, Sequence

from penstock.errors import SourceError
from penstock.shapes.source_table import SourceColumn, SourceTable
from penstock.values.lake_types import innermost

SLUG = "text-not-stored"
LOST = "the lake keeps the name of when a row was written, and shows nothing of a rename or a drop since"


def identifying_names(table: SourceTable) -> list[SourceColumn]:
    """Return such columns among those by which rows are told apart: of the key, or of whole rows where there is none."""
    whole_rows = table.identity == "f" and not table.key
    return [column for column in table.columns if column.names_objects and (column.key or whole_rows)]


def others(table: SourceTable) -> list[SourceColumn]:
    """Return such columns that only show what they show."""
    found = identifying_names(table)
    return [column for column in table.columns if column.names_objects and column not in found]


def problem(table: SourceTable) -> str | None:
    """Say why updates and deletes would not find a table's rows in the lake, or return None."""
    found = identifying_names(table)
    if not found:
        return None
    by = "its key has" if table.key else "without a key only whole rows tell its rows apart, and it has"
    return f"{by} {named(found)}: when that is renamed or dropped, old rows are not found any more"


def remedy(table: SourceTable) -> str:
    """Say what makes such a table one whose rows are found."""
    return f"give it a key of other columns, or run: {stored(table, identifying_names(table))}"


def named(columns: Sequence[SourceColumn]) -> str:
    """Name such columns for a message."""
    names = ", ".join(f"{column.name} ({column.names_objects})" for column in columns)
    which = f"columns {names}, whose texts are names" if len(columns) > 1 else f"column {names}, whose text is the name"
    return f"{which} of another object"


def stored(table: SourceTable, columns: Sequence[SourceColumn]) -> str:
    """Return the statement after which columns show what they store, where that is a number, else the text of today."""
    steps = ", ".join(f"alter {_quoted(column.name)} type {_stored_as(column)}" for column in columns)
    return f"alter table {_quoted(table.schema)}.{_quoted(table.name)} {steps}"


def require_distinct_rows(tables: Iterable[SourceTable]) -> None:
    """Raise SourceError("no-usable-identity") naming the tables whose rows are told apart by names of other objects."""
    found = [f"{table.qualified}: {reason}; {remedy(table)}" for table in tables if (reason := problem(table))]
    if found:
        raise SourceError(
            "no-usable-identity",
            f"expected every table to have a key that says the same of a row at any time, got {'; '.join(found)}; or exclude it",
        )


def _stored_as(column: SourceColumn) -> str:
    type_ = innermost(column.type)
    element = innermost(type_.element) if type_.element is not None else type_
    if element.schema == "pg_catalog" and element.name.startswith("reg"):
        return "oid" if element is type_ else "oid[]"
    return f"text using {_quoted(column.name)}::text"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
