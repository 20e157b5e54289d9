"""Whether a snapshot's rows can still be read: TRUNCATE and rewrites give a table another file, which older snapshots see empty.

PostgreSQL documentation, "Caveats" of MVCC: such commands are not MVCC-safe. The question is asked inside the
transaction that has read, under whichever driver.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from penstock.sql import load


def rewritten_query(heaps: Sequence[tuple[str, str]]) -> sql.Composed:
    """Compose the query that names those of these (schema, name) which are not in the file that the snapshot knows."""
    return sql.SQL(load("source/rewritten")).format(
        schemas=sql.Literal([schema for schema, _ in heaps]), names=sql.Literal([name for _, name in heaps])
    )
