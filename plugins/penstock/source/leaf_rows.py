"""What the rows of one leaf say of its past, where the catalog alone does not: each question is bounded, and reads no value.

Looks are the reader's, on a session of their own, for they run functions of the leaf's owner. A row's own transaction and command show whether it was there before: `vacuum full` keeps them, TRUNCATE and a rewrite do
not. What stays unknown, the caller leaves undecided.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.shapes.source_table import Leaf
from penstock.source.reading import reading
from penstock.source.session import SourceSession, composed, connect

_BLOCKS = 64
_SECONDS = 5


@dataclass
class LeafRows:
    """Inspect the rows of one table's leaves; one that cannot be read, or not in time, shows nothing, and no other one is asked then."""

    conn: SourceSession
    failed: bool = False

    def kept(self, leaf: Leaf, oldest_xid: int) -> bool:
        """Return whether a leaf holds a row of a transaction below `oldest_xid`, in its first blocks.

        Such a row in a new file proves that the rows were moved as they were.
        """
        if not leaf.ranged:
            return False
        return bool(self._ask("leaf_rows/kept", leaf, end=f"({_BLOCKS},0)", oldest=oldest_xid))

    def holds_row_of(self, leaf: Leaf, xid: int, command: int) -> bool:
        """Return whether a leaf holds a row that one command of a transaction wrote, untouched since."""
        return bool(self._ask("leaf_rows/holds_row_of", leaf, xid=str(xid), command=command))

    def refilled(self, leaf: Leaf, xid: int) -> int | None:
        """Count the rows of a leaf that one transaction wrote and nobody has touched since.

        None where one of them is not younger than the transaction's last change of the leaf itself: so the leaf was written,
        then rewritten or unlogged for a while, and its rows are not those that the stream brought.
        """
        found: int | None = self._ask("leaf_rows/refilled", leaf, xid=str(xid), oid=leaf.oid)
        return found

    def empty_in(self, leaf: Leaf) -> str | None:
        """Return the text of a snapshot in which a leaf is empty; None where it is not."""
        found: str | None = self._ask("leaf_rows/empty_in", leaf)
        return found

    def _ask(self, question: str, leaf: Leaf, **values: object) -> Any:
        if leaf.kind != "r" or self.failed:
            return None
        try:
            with reading(self.conn, _SECONDS):
                ((answer,),) = self.conn.ask(composed(question, leaf=sql.Identifier(leaf.schema, leaf.name)), **values)
        except SourceError:
            self.failed = True
            return None
        return answer


@contextmanager
def looking(source: Connection, *, what: str) -> Iterator[LeafRows]:
    """Lend the way to look at the leaves of one table; raises SourceError where the reader cannot log in."""
    with connect(source, what=what, statement_timeout=_SECONDS) as conn:
        yield LeafRows(conn)
