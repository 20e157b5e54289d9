"""One read of users' relations: read only, bounded in time, and nothing that it did to its session stays.

Whoever owns a relation has functions run by every query over it: PostgreSQL evaluates the expressions of its indexes and
statistics while it plans. So such a read belongs to the reader's role, in a transaction that cannot write, and that is
always rolled back, which takes settings back as well. A function can catch the end of a time limit, but no FATAL error:
what goes on after the limit is ended from another session.

Such functions are called with an empty `search_path`, which not every one survives, and may not end. COPY of a relation by its name is
not planned. So one EXPLAIN decides before anything is read.

What concerns one table only stops none of the others. TRUNCATE and rewrites give a table another file, which older snapshots see
empty (PostgreSQL documentation, "Caveats" of MVCC): whether that has happened is asked inside the transaction that has read.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Timer

import psycopg
from psycopg import sql

from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.source.arrow import ArrowSession
from penstock.source.server_errors import shown, translate
from penstock.source.session import SourceSession, composed, connect, require_pinned

Heap = tuple[str, str]
"""Schema and name of a relation that holds rows."""

_SECONDS = 30
_NOT_THE_PLAN = re.compile("(08|25P|28|3D|40|53|55|57P|58|XX)...?")
"""Errors of the server or of a lock, which are no function's and which another try may not meet."""

_GRACE_SECONDS = 5  # the server ends a statement by its own limit, unless a function catches that


class EndedError(SourceError):
    """A session went on after its time limit, and was ended."""


@contextmanager
def reading(conn: SourceSession, seconds: int, *, snapshot_name: str | None = None) -> Iterator[None]:
    """Read inside, in an exported snapshot if one is named; raises SourceError, "source-timeout" after so many seconds."""
    with bounded(conn, seconds), conn.snapshot(snapshot_name):
        conn.run(sql.SQL("set local statement_timeout = {}").format(sql.Literal(f"{seconds}s")))
        yield


@contextmanager
def bounded(session: SourceSession | ArrowSession, seconds: int) -> Iterator[None]:
    """End a session that is at work inside after so many seconds; raises SourceError("source-timeout") then."""
    ((pid, started),) = session.ask(composed("reading/backend"))
    ended: list[bool] = []

    def end() -> None:
        ended.append(True)
        with suppress(SourceError), connect(session.source, what="limit") as other:
            other.rows("reading/end", pid=pid, started=started)

    alarm = Timer(seconds + _GRACE_SECONDS, end)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    except (SourceError, psycopg.Error):
        if not ended:
            raise
        raise EndedError(
            "source-timeout",
            f"expected {session.place} to end a read within {seconds} s, but it went on and its session was ended: "
            "look for a function that catches the limit, in the table's indexes",
        ) from None
    finally:
        alarm.cancel()


_OF_ONE_TABLE = (
    "table-rewritten",
    "source-auth",
    "source-corrupt",
    "source-error",
    "source-out-of-memory",
    "source-timeout",
    "decoding-limit",
)
"""What may go wrong with one table, once the source has let us in and the snapshot is there."""


class TableError(SourceError):
    """One table cannot be read as its snapshot sees it; the others can."""


@contextmanager
def of_one_table() -> Iterator[None]:
    """Raise what concerns only the table that is read inside as a TableError, any other SourceError as it is."""
    try:
        yield
    except SourceError as error:
        if error.slug not in _OF_ONE_TABLE:
            raise
        raise TableError(error.slug, error.message) from None


def require_same(session: SourceSession | ArrowSession, heaps: Sequence[Heap]) -> None:
    """Raise TableError("table-rewritten") for one that was truncated, rewritten, renamed or dropped since the snapshot.

    Ask after reading: from then on the lock of the transaction lets no other session do that. Raises SourceError.
    """
    require_pinned(session)  # a function may have set what names mean, and how values are written
    schemas, names = (sql.Literal([heap[part] for heap in heaps]) for part in (0, 1))
    for schema, name in session.ask(composed("reading/rewritten", schemas=schemas, names=names)):
        raise rewritten_error((schema, name))


def rewritten_error(heap: Heap) -> TableError:
    """Make the error of a relation that the query has named."""
    return TableError(
        "table-rewritten",
        f"expected {'.'.join(heap)} to keep the file that the snapshot knows until it is read, but it was "
        "truncated, rewritten, renamed or dropped: read it under a later snapshot",
    )


def unplannable(conn: SourceSession, reader: Connection, heaps: Sequence[Heap], *, what: str) -> dict[Heap, TableError]:
    """Return over which of these relations the reader can plan no query, and why; raises SourceError."""
    found: dict[Heap, TableError] = {}
    for heap, functions in _evaluated(conn, heaps).items():
        with connect(reader, what=what) as reading_one:
            try:
                with of_one_table(), reading(reading_one, 2 * _SECONDS):
                    _plan(reading_one, heap, functions)
            except TableError as error:
                if error.slug == "planning-failed":  # any other one is met again when the relation is read
                    found[heap] = error
    return found


def require_planned(conn: SourceSession, heap: Heap) -> None:
    """Plan a query over one relation inside of `reading`; raises SourceError, TableError("planning-failed")."""
    for functions in _evaluated(conn, [heap]).values():
        _plan(conn, heap, functions)


def generated(conn: SourceSession, heap: Heap, columns: Sequence[str]) -> bool:
    """Return whether one of these columns is generated, and so no part of COPY of the relation; raises SourceError."""
    return bool(conn.row("reading/generated", schema=heap[0], name=heap[1], columns=list(columns))[0])


def _evaluated(conn: SourceSession, heaps: Sequence[Heap]) -> dict[Heap, list[str]]:
    """Return those with expressions that the planner evaluates, with the users' functions in them."""
    schemas, names = [schema for schema, _ in heaps], [name for _, name in heaps]
    found = conn.rows("reading/expressions", schemas=schemas, names=names)
    return {(schema, name): functions for schema, name, functions in found}


def _plan(conn: SourceSession, heap: Heap, functions: Sequence[str]) -> None:
    try:
        # rolled back: what a function has set must not be there for what comes next
        with bounded(conn, _SECONDS), conn.transaction(force_rollback=True):
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
