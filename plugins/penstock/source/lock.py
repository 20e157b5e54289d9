"""One run at a time may read a pipeline's slot: the slot itself is free between a peek and its confirmation.

The lock is an advisory one of the source's session, keyed by the pipeline's name; it ends with the session,
however that ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import SourceError
from penstock.source.session import SourceSession


@contextmanager
def hold(conn: SourceSession, pipeline: str) -> Iterator[None]:
    """Hold the pipeline's lock on this database; raises SourceError("slot-in-use") naming who holds it."""
    key = lock_key(pipeline)
    (taken,) = conn.row("lock/lock", key=key)
    if not taken:
        raise _in_use(conn, pipeline, key)
    try:
        yield
    finally:
        if not conn.closed:  # a lost session has lost its locks too
            conn.rows("lock/unlock", key=key)


def lock_key(pipeline: str) -> int:
    """Return the signed 64-bit key of a pipeline's lock."""
    digest = hashlib.sha256(f"penstock:{pipeline}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _in_use(conn: SourceSession, pipeline: str, key: int) -> SourceError:
    holders = [
        f'process {pid}, role "{user}", {name or "no name"}'
        for pid, user, name in conn.rows("lock/lock_holder", key=key)
    ]
    return SourceError(
        "slot-in-use",
        f"expected to be the only run of pipeline {pipeline} at {conn.place}, but its lock is held by "
        f"{'; '.join(holders) or 'a session that has just ended'}; wait for it, or end it if it is a left-over",
    )
