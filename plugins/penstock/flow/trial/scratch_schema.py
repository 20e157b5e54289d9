"""Whether the scratch database has the tables of the source as they are there: else what is tried proves nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.shapes.source_table import SourceColumn, SourceTable


def differences(source: Iterable[SourceTable], scratch: Iterable[SourceTable]) -> Iterator[str]:
    """Name what is otherwise in the scratch database, by table."""
    made = {table.qualified: table for table in scratch}
    for table in source:
        found = made.get(table.qualified)
        if found is None:
            yield f"{table.qualified} is missing"
            continue
        if (found.kind, found.identity) != (table.kind, table.identity):
            yield f"{table.qualified} has another kind or replica identity"
        here, there = _columns(found), _columns(table)
        yield from (f"{table.qualified}.{name} is missing" for name in there if name not in here)
        yield from (f"{table.qualified}.{name} is not at the source" for name in here if name not in there)
        yield from (
            f"{table.qualified}.{name} is otherwise" for name in there if name in here and here[name] != there[name]
        )


def _columns(table: SourceTable) -> dict[str, tuple[object, ...]]:
    return {column.name: _facts(column) for column in table.columns}


def _facts(column: SourceColumn) -> tuple[object, ...]:
    # oids and attnums are the database's own
    kind = column.type
    return (kind.schema, kind.name, kind.typmod, column.not_null, column.key, column.generated, column.identity)
