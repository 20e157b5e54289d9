"""What the ledger remembers of the shapes of tables: as the stream announced them, and as looks at the catalog found them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from penstock.ledger.json_codec import relation_from_json
from penstock.ledger.records import Row
from penstock.lsn import Lsn
from penstock.wire.messages import Relation


@dataclass(frozen=True)
class RelationRecord(Row):
    """Hold one shape of a relation as the stream described it, first in the window that ends at `seen_lsn`."""

    version: int
    relation: Relation
    seen_lsn: Lsn

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        return cls(row["version"], relation_from_json(row), row["seen_lsn"])


ColumnState = tuple[str, int, int]
"""What a column was at a look: its name, its type's oid and its typmod."""


@dataclass(frozen=True)
class ColumnLook:
    """Hold the published columns of a table by attnum, in order, as a look has found them, and how many attnums were given out.

    `trigger` is the token of the source's event trigger at that time, empty where that may miss commands, None where it is not read.
    `sure`: everything was so at the position that was asked for.
    `key` are the attnums of those that identify a row, `key_index` the index that sees to that (0 for none). `hidden` are columns
    that were not published.
    """

    count: int
    columns: Mapping[int, ColumnState]
    trigger: str | None = None
    sure: bool = False
    key: tuple[int, ...] = ()
    key_index: int = 0
    hidden: tuple[int, ...] = ()

    @classmethod
    def from_row(
        cls,
        count: int,
        columns: Sequence[tuple[int, str, int, int]],
        trigger: str | None,
        *,
        sure: bool,
        key: Sequence[int],
        key_index: int,
        hidden: Sequence[int],
    ) -> ColumnLook:
        """Read what the ledger has."""
        states = {attnum: (name, oid, typmod) for attnum, name, oid, typmod in columns}
        return cls(count, states, trigger, sure, tuple(key), key_index, tuple(hidden))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        columns = [[attnum, *state] for attnum, state in self.columns.items()]
        return {
            "count": self.count,
            "columns": columns,
            "key": list(self.key),
            "key_index": self.key_index,
            "hidden": list(self.hidden),
        }


@dataclass(frozen=True)
class RelationNumbers:
    """Say which of the table's columns those of a relation version are, None where that cannot be told.

    `key` are those by which its changes find their rows: none where only whole rows do, None where that is not known.
    """

    attnums: tuple[int, ...] | None
    key: tuple[int, ...] | None = None


@dataclass(frozen=True)
class RelationAttnums:
    """Hold which of the table's columns those of relation versions are: by oid and version, since which window, in order."""

    since: Mapping[tuple[int, int], Sequence[tuple[Lsn, RelationNumbers]]]

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, Lsn, list[int] | None, list[int] | None]]) -> RelationAttnums:
        """Read rows in the order of positions."""
        since: dict[tuple[int, int], list[tuple[Lsn, RelationNumbers]]] = {}
        for oid, version, lsn, *lists in rows:
            numbers = RelationNumbers(*(None if each is None else tuple(each) for each in lists))
            since.setdefault((oid, version), []).append((lsn, numbers))
        return cls(since)

    def at(self, oid: int, version: int, window: Lsn) -> Sequence[RelationNumbers]:
        """Return what a version's columns are in the window from a position on; nothing where nobody has looked."""
        return [numbers for lsn, numbers in self.since.get((oid, version), ()) if lsn <= window][-1:]
