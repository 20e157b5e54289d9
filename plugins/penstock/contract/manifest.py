"""What is known of one landing file without opening it: its rows, counted by kind of change, and the span they lie in."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

from penstock.codec import JsonForm

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Typed = tuple[tuple[str, str], ...]
"""The columns of a copy's file that hold values instead of texts, each with its lake type."""


def moment(microseconds: int) -> datetime:
    """Return the time so many microseconds after the beginning of 1970 UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds(time: datetime) -> int:
    """Return a time as microseconds since the beginning of 1970 UTC."""
    return (time - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """Count rows by kind of change.

    `unchanged` are the rows with at least one unchanged TOAST column, `old_key` and `old_full` those with an old image of
    that kind.
    """

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    truncates: int = 0
    unchanged: int = 0
    old_key: int = 0
    old_full: int = 0

    @property
    def rows(self) -> int:
        """Return the rows of every kind."""
        return self.inserts + self.updates + self.deletes + self.truncates

    def __add__(self, other: ChangeCounts) -> ChangeCounts:
        return ChangeCounts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True, slots=True)
class FileEntry(JsonForm):
    """Describe one landing file, as the ledger's manifests do.

    `path` is relative to the landing zone. `version` numbers the shape of the relation `oid` (0 for a copy).
    `columns` are the fields of `new` and `old`. `min_commit_lsn`, `max_commit_lsn` and `max_xid` are None in a file without
    rows. `attnums` are the numbers of the columns in a file of fetched values, which says nothing of other columns.
    `min_committed_at` and `max_committed_at` are microseconds since 1970 UTC, None where a row has no time: such a
    file may hold any time.
    """

    path: str
    oid: int
    version: int
    rows: int
    bytes: int
    min_commit_lsn: int | None
    max_commit_lsn: int | None
    columns: tuple[str, ...]
    counts: ChangeCounts
    max_xid: int | None = None
    min_committed_at: int | None = None
    max_committed_at: int | None = None
    typed: Typed = ()
    attnums: tuple[int, ...] | None = None
