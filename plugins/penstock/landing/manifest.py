"""What the ledger remembers of one landing file: enough to plan a merge without opening it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Describe one landing file.

    `path` is relative to the landing zone. `version` numbers the shape of the relation `oid` (0 for a copy).
    `columns` are the fields of `new` and `old`; the counts are rows per kind of change, `unchanged` the rows with
    at least one unknown column, `old_key` and `old_full` the rows with an old image of that kind.
    `min_commit_lsn`, `max_commit_lsn` and `max_xid` are None in a file without rows.
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

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the ledger and for result files."""
        return asdict(self) | {"columns": list(self.columns)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FileEntry:
        """Read what `to_json` wrote."""
        return cls(**{**data, "columns": tuple(data["columns"])})
