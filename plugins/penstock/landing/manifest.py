"""What the ledger remembers of one landing file: enough to plan a merge without opening it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(microseconds: int) -> datetime:
    """Return the time so many microseconds after the beginning of 1970 UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds(time: datetime) -> int:
    """Return a time as microseconds since the beginning of 1970 UTC."""
    return (time - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Describe one landing file.

    `path` is relative to the landing zone. `version` numbers the shape of the relation `oid` (0 for a copy).
    `columns` are the fields of `new` and `old`, `typed` pairs those that hold values instead of texts with their lake
    types; the counts are rows per kind of change, `unchanged` the rows with
    at least one unknown column, `old_key` and `old_full` the rows with an old image of that kind.
    `min_commit_lsn`, `max_commit_lsn` and `max_xid` are None in a file without rows. `min_committed_at` and
    `max_committed_at` are microseconds since 1970 UTC, None where they were not recorded: such a file may hold any time.
    """

    path: str
    oid: int
    version: int
    rows: int
    bytes: int
    min_commit_lsn: int | None
    max_commit_lsn: int | None
    columns: tuple[str, ...]
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    truncates: int = 0
    unchanged: int = 0
    old_key: int = 0
    old_full: int = 0
    max_xid: int | None = None
    min_committed_at: int | None = None
    max_committed_at: int | None = None
    typed: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the ledger and for result files."""
        return asdict(self) | {"columns": list(self.columns), "typed": [list(pair) for pair in self.typed]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FileEntry:
        """Read what `to_json` wrote."""
        typed = tuple((name, lake_type) for name, lake_type in data.get("typed", ()))
        return cls(**{**data, "columns": tuple(data["columns"]), "typed": typed})
