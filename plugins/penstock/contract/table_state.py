"""What a table is after a command of DDL, as the source's event trigger writes it into the WAL: a JSON text in a logical message.

Anybody who may connect to the source can write such a message. So none is believed by itself: a state has to agree with the
stream's own RELATION messages, with the states before and after it, and with the catalog.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PREFIX = "penstock.ddl"
VERSION = 4
"""Of the message's form; another one is not read."""
_MOST_BYTES = 4 << 20  # 1,600 columns of the longest names come to a sixth of it


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
        """Read plain data; raises KeyError, TypeError or ValueError for other data."""
        trigger = data["trigger"]
        if data.get("gone"):
            return cls(int(data["oid"]), trigger, gone=True)
        columns = {int(n): (str(name), int(type_), int(typmod)) for n, name, type_, typmod, _ in data["columns"]}
        dropped = {int(attnum): int(xid) for attnum, xid in data["dropped"]}
        state = cls(
            oid=int(data["oid"]),
            trigger=trigger,
            count=int(data["count"]),
            columns=columns,
            dropped=dropped,
            xid=int(data["xid"]),
            versions={int(attnum): int(version) for attnum, *_, version in data["columns"]},
            file=int(data["file"]),
            written=_pair(data.get("written", (0, 0))),
            plain=data["plain"] is True,
            unlogged=data["unlogged"] is True,
        )
        attnums = sorted([*columns, *dropped])
        if attnums != list(range(1, state.count + 1)) or list(columns) != sorted(columns):
            raise ValueError("expected every attnum once, and the columns in their order")
        return state


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
    """Hold the last states that a window's messages told, where no message that said nothing came after; `lapsed`: one came."""

    last: Sequence[TableState] = ()
    lapsed: bool = False


def read(content: bytes) -> TableState | FileBefore | None:
    """Read a message's content; None where it says that something is missing, or is of another form."""
    if len(content) > _MOST_BYTES:
        return None
    try:
        data = json.loads(content)
        if data["version"] != VERSION:
            return None
        return _file_before(data) if "rewrites" in data else TableState.from_json(data)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _file_before(data: Mapping[str, Any]) -> FileBefore:
    return FileBefore(int(data["oid"]), data["trigger"], int(data["xid"]), int(data["rewrites"]), data["empty"] is True)


def _pair(values: Sequence[Any]) -> tuple[int, int]:
    xid, command = values
    return int(xid), int(command)
