"""Open transactions of the source: who they are, for whoever has to wait for them or to end them. Never their query."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.source.session import SourceSession


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """Name one transaction that has written; `prepared` is its name if it is a prepared one.

    `xids` counts the transactions since it began. `age_seconds` is None where the role may not see when that was.
    """

    pid: int | None
    user: str | None
    database: str | None
    application: str | None
    age_seconds: float | None
    prepared: str | None
    xids: int

    @property
    def subject(self) -> str:
        """Name it in an alarm."""
        return f"prepared {self.prepared}" if self.prepared else f"process {self.pid}"

    def describe(self) -> str:
        """Say who it is and since when, for a person who has to end it."""
        return self.name() + ("" if self.age_seconds is None else f", open for {self.age_seconds:.0f} s")

    def name(self) -> str:
        """Say who it is."""
        if not (self.pid or self.prepared):
            return "one that has just ended"
        who = f"process {self.pid} ({self.application or 'no name'})" if self.pid else f'prepared "{self.prepared}"'
        return f'{who} of role "{self.user}" in database "{self.database}"'


def open_now(conn: SourceSession, *, limit: int | None = None) -> list[OpenTransaction]:
    """List the transactions that have written, in any database, the oldest first; a slot's creation waits for each.

    Raises SourceError.
    """
    return conn.records(OpenTransaction, "transactions/open_now", limit=limit)


def open_before(conn: SourceSession, xid: int) -> list[OpenTransaction]:
    """List the transactions with ids below `xid` that may have written to this database and are open; raises SourceError."""
    return conn.records(OpenTransaction, "transactions/open_before", bound=xid)
