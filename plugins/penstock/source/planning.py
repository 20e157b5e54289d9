"""Relations over which no query can be planned: a function in an index or in statistics fails, or does not end.

PostgreSQL evaluates such expressions while it plans, and ours are planned with an empty `search_path`, which not every
function survives. COPY of a relation by its name is not planned. So one EXPLAIN decides before anything is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from penstock.config.connections import Connection
from penstock.source.error_translation import shown, translate
from penstock.source.reading import EndedError, TableError, bounded, of_one_table, reading
from penstock.source.session import SourceSession, connect

Heap = tuple[str, str]
"""Schema and name of a relation that holds rows."""

_SECONDS = 30
_NOT_THE_PLAN = re.compile("(08|25P|28|3D|40|53|55|57P|58|XX)...?")
"""Errors of the server or of a lock, which are no function's and which another try may not meet."""


@dataclass(frozen=True, slots=True)
class _Evaluated:
    schema: str
    name: str
    functions: list[str]


def unplannable(conn: SourceSession, reader: Connection, heaps: Sequence[Heap], *, what: str) -> dict[Heap, TableError]:
    """Return over which of these relations the reader can plan no query, and why; raises SourceError."""
    found: dict[Heap, TableError] = {}
    for heap, functions in _evaluated(conn, heaps).items():
        with connect(reader, what=what) as reading_one:
            try:
                with of_one_table(), reading(reader, reading_one, 2 * _SECONDS):
                    _plan(reader, reading_one, heap, functions)
            except TableError as error:
                if error.slug == "planning-failed":  # any other one is met again when the relation is read
                    found[heap] = error
    return found


def require_planned(conn: SourceSession, reader: Connection, heap: Heap) -> None:
    """Plan a query over one relation inside of `reading`; raises SourceError, TableError("planning-failed")."""
    for functions in _evaluated(conn, [heap]).values():
        _plan(reader, conn, heap, functions)


def generated(conn: SourceSession, heap: Heap, columns: Sequence[str]) -> bool:
    """Return whether one of these columns is generated, and so no part of COPY of the relation; raises SourceError."""
    return bool(conn.row("planning/generated", schema=heap[0], name=heap[1], columns=list(columns))[0])


def _evaluated(conn: SourceSession, heaps: Sequence[Heap]) -> dict[Heap, list[str]]:
    """Return those with expressions that the planner evaluates, with the users' functions in them."""
    schemas, names = [schema for schema, _ in heaps], [name for _, name in heaps]
    found = conn.records(_Evaluated, "planning/expressions", schemas=schemas, names=names)
    return {(each.schema, each.name): each.functions for each in found}


def _plan(reader: Connection, conn: SourceSession, heap: Heap, functions: Sequence[str]) -> None:
    try:
        # rolled back: what a function has set must not be there for what comes next
        with bounded(reader, conn.row("reading/backend"), _SECONDS), conn.transaction(force_rollback=True):
            conn.execute(sql.SQL("set local statement_timeout = {}").format(sql.Literal(f"{_SECONDS}s")))
            conn.execute(sql.SQL("explain select from only {}").format(sql.Identifier(*heap)))
    except EndedError as error:
        raise _failed(heap, functions, str(error)) from None
    except psycopg.Error as error:
        if error.sqlstate is None or _NOT_THE_PLAN.fullmatch(error.sqlstate):
            raise translate(error, conn.place) from None
        raise _failed(heap, functions, shown(error)) from None


def _failed(heap: Heap, functions: Sequence[str], said: str) -> TableError:
    named = ", ".join(functions)
    step = " and ".join(f"alter function {each} set search_path = <the schemas that it needs>" for each in functions)
    return TableError(
        "planning-failed",
        f"expected PostgreSQL to plan a query over {'.'.join(heap)}, but an expression in its indexes or statistics"
        f"{f', with the functions {named},' if named else ''} failed: {said}; have its owner write names in it with their "
        f"schemas{f', or run: {step}' if step else ''}",
    )
