"""What is known of one landing file without opening it: its rows, counted by kind of change, and the span they lie in."""

from __future__ import annotations

from collections.abc import Iterable
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

    def at(self, uri: str) -> FileRef:
        """Name the file for who reads it there."""
        partial = self.attnums is not None
        return FileRef(uri, self.rows, self.bytes, self.columns, self.counts, self.typed, partial=partial)


@dataclass(frozen=True, slots=True)
class FileRef:
    """Name one landing file for who reads it, and what is known of it before that.

    `columns` are the fields of its `new` and `old` structs (of a copy: its columns); `fields` are the lake's names of these,
    None for one that the lake does not have, where they are not the same. A `partial` file says nothing of the columns that it lacks.
    `key` are the lake's columns by which its changes find their rows, where these are not the table's key: none where whole
    rows do. `reals` are columns of type `real`, by the lake's names, that the lake has as double precision. `only` are the first
    row and the one after the last that concern a task, where it is not to read all of the file. `era` is said where files of several are read.
    """

    uri: str
    rows: int
    bytes: int
    columns: tuple[str, ...]
    counts: ChangeCounts = ChangeCounts()
    typed: Typed = ()
    fields: tuple[str | None, ...] | None = None
    partial: bool = False
    key: tuple[str, ...] | None = None
    reals: tuple[str, ...] = ()
    only: tuple[int, int] | None = None
    era: int | None = None

    @property
    def names(self) -> tuple[str | None, ...]:
        """Return the lake's names of the columns, None for one that the lake does not have."""
        return self.columns if self.fields is None else self.fields


def alike(files: Iterable[FileRef]) -> list[list[tuple[int, FileRef]]]:
    """Put files together that are read alike, each with its number: those of the same columns under the same names, and so on."""
    groups: dict[tuple[object, ...], list[tuple[int, FileRef]]] = {}
    for number, file in enumerate(files):
        kind = (file.columns, file.fields, file.typed, file.partial, file.reals, file.only, file.era)
        groups.setdefault(kind, []).append((number, file))
    return list(groups.values())


def total(files: Iterable[FileRef]) -> ChangeCounts:
    """Count the changes of all files."""
    counts = [file.counts for file in files]
    return ChangeCounts(*(sum(getattr(each, kind.name) for each in counts) for kind in fields(ChangeCounts)))
