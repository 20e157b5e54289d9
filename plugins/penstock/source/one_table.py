"""What concerns one table only while it is read under a snapshot: the others can be read all the same.

TRUNCATE and rewrites give a table another file, which older snapshots see empty (PostgreSQL documentation, "Caveats" of
MVCC). Whether that has happened is asked inside the transaction that has read, under whichever driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from psycopg import sql

from penstock.errors import SourceError
from penstock.sql import load

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


def rewritten_query(heaps: Sequence[tuple[str, str]]) -> sql.Composed:
    """Compose the query that names those of these (schema, name) which are not in the file that the snapshot knows.

    Ask after reading: from then on the lock of the transaction lets no other session truncate or rewrite them.
    """
    return sql.SQL(load("source/one_table/rewritten")).format(
        schemas=sql.Literal([schema for schema, _ in heaps]), names=sql.Literal([name for _, name in heaps])
    )


def rewritten_error(heap: tuple[str, str]) -> TableError:
    """Make the error of a relation that the query has named."""
    return TableError(
        "table-rewritten",
        f"expected {'.'.join(heap)} to keep the file that the snapshot knows until it is read, but it was "
        "truncated, rewritten, renamed or dropped: read it under a later snapshot",
    )
