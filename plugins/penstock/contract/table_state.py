"""What a table is after a command of DDL, as the source's event trigger tells it (`contract/ddl_message.py` reads it).

That the trigger tells it is proved, that it has told everything is not. So a state has to agree with the stream's own RELATION
messages, with the states before and after it, and with the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TableState:
    """Hold a table's columns by attnum, in order, as name, type oid and typmod; and those dropped, with the 32-bit id of who did.

    `count` attnums were ever given out. `trigger` stays the same as long as the event trigger is there and enabled, None
    where it may have missed something. `xid` is the transaction's id; `gone`: the table was dropped.
    `versions` are those of the columns' catalog rows, `file` is the number of the table's file, `written` the 32-bit transaction id and
    the command that wrote its own catalog row. `plain`: the command was one
    ALTER TABLE of a client's, without USING, so that the server's own casts made the values of retyped columns. `unlogged`: the
    stream has none of its changes.
    """

    oid: int
    trigger: str | None
    count: int = 0
    columns: Mapping[int, tuple[str, int, int]] = field(default_factory=dict)
    dropped: Mapping[int, int] = field(default_factory=dict)
    xid: int = 0
    gone: bool = False
    versions: Mapping[int, int] = field(default_factory=dict)
    file: int = 0
    written: tuple[int, int] = (0, 0)
    plain: bool = False
    unlogged: bool = False

    def attnums(self, sent: Iterable[tuple[str, int, int]]) -> tuple[int, ...] | None:
        """Return which of the columns these are, by name and type; None where one is not there, or they have another order."""
        there = {column: attnum for attnum, column in self.columns.items()}
        numbers = [there.get(column, 0) for column in sent]
        return tuple(numbers) if 0 not in numbers and numbers == sorted(numbers) else None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "oid": self.oid,
            "trigger": self.trigger,
            "count": self.count,
            "columns": [[attnum, *column, self.versions.get(attnum, 0)] for attnum, column in self.columns.items()],
            "dropped": [[attnum, xid] for attnum, xid in self.dropped.items()],
            "xid": self.xid,
            "file": self.file,
            "written": list(self.written),
            "plain": self.plain,
            "unlogged": self.unlogged,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TableState:
        """Read plain data."""
        return cls(
            oid=data["oid"],
            trigger=data["trigger"],
            count=data["count"],
            columns={attnum: (name, type_, typmod) for attnum, name, type_, typmod, _ in data["columns"]},
            dropped=dict(data["dropped"]),
            xid=data["xid"],
            versions={attnum: version for attnum, *_, version in data["columns"]},
            file=data["file"],
            written=(data["written"][0], data["written"][1]),
            plain=data["plain"],
            unlogged=data["unlogged"],
        )


@dataclass(frozen=True, slots=True)
class FileBefore:
    """Hold the number of the file that a command of transaction `xid` was about to rewrite, a partition's; `empty`: it has no block."""

    oid: int
    trigger: str | None
    xid: int
    file: int
    empty: bool


@dataclass(frozen=True, slots=True)
class TableStates:
    """Hold the last states that a window's DDL events left, where no message that said nothing came after; `has_gap`: one came."""

    last: Sequence[TableState] = ()
    has_gap: bool = False
