"""What is known of a table's columns at one place of the stream: from the catalog, or from the log of the source's event trigger. Pure.

That the trigger logs it is proved, that it has logged everything is not. So a logged shape has to agree with the stream's own
RELATION messages, with the shapes before and after it, and with the catalog (`shapes/timeline.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.codec import JsonForm
from penstock.shapes.source_table import ColumnState, Shape
from penstock.wire.messages import Relation

_ELSEWHERE = frozenset({"oid", "generation", "sure", "gaps", "rewrote", "gone"})
"""The fields that the ledger keeps beside its JSON, and those that concern one window alone."""


@dataclass(frozen=True, slots=True)
class FileBefore:
    """Hold the number of the file that a command of transaction `xid` was about to rewrite, a partition's; `empty`: it has no block."""

    oid: int
    generation: str | None
    xid: int
    file: int
    empty: bool


@dataclass(frozen=True, slots=True)
class KnownShape(JsonForm):
    """Hold a table's columns by attnum, in order; `count` attnums were ever given out.

    `generation` is the event trigger's at that time: the same as long as it is there and enabled, empty where it may miss commands,
    None where that is not known. `gaps` counts the trigger's messages of the window that said nothing until then.

    Of the catalog, with the published columns alone: `key` are those that identify a row, `key_index` the index that sees to that
    (0 for none), `hidden` those that are not published. `sure`: everything was so at the position that was asked for.

    Of the log: `dropped` has the columns that are not there any more, each with the 32-bit id of who dropped it. `xid` is the
    transaction's id, 0 in the catalog; `versions` are those of the columns' catalog rows, `file` is the number of the table's file,
    `written` the 32-bit transaction id and the command that wrote its own catalog row. `plain`: the command was one ALTER TABLE of a
    client's, without USING, so that the server's own casts made the values of retyped columns. `unlogged`: the stream has none of its
    changes. `gone`: the table was dropped. `rewrote` is the file that was logged right before: the one that the command has rewritten. `oid` is the table's.
    """

    count: int
    columns: Mapping[int, ColumnState]
    generation: str | None = None
    gaps: int = 0
    key: tuple[int, ...] = ()
    key_index: int = 0
    hidden: tuple[int, ...] = ()
    sure: bool = False
    dropped: Mapping[int, int] = field(default_factory=dict)
    xid: int = 0
    versions: Mapping[int, int] = field(default_factory=dict)
    file: int = 0
    written: tuple[int, int] = (0, 0)
    plain: bool = False
    unlogged: bool = False
    gone: bool = False
    rewrote: FileBefore | None = None
    oid: int = 0

    @classmethod
    def of(cls, shape: Shape) -> KnownShape:
        """Return what the catalog has of a table's columns."""
        columns = dict(sorted(shape.columns.items()))
        return cls(shape.attnums, columns, key=shape.key, key_index=shape.key_index, hidden=tuple(shape.hidden))

    def attnums(self, sent: Iterable[ColumnState]) -> tuple[int, ...] | None:
        """Return which of the columns these are, by name and type; None where one is not there, or they have another order."""
        there = {column: attnum for attnum, column in self.columns.items()}
        numbers = [there.get(column, 0) for column in sent]
        return tuple(numbers) if 0 not in numbers and numbers == sorted(numbers) else None

    def to_json(self) -> dict[str, Any]:
        """Return what the ledger keeps as JSON."""
        return {name: value for name, value in JsonForm.to_json(self).items() if name not in _ELSEWHERE}


def sent_states(relation: Relation) -> list[ColumnState]:
    """Return the columns of a relation in the form in which shapes have them."""
    return [(column.name, column.type_oid, column.typmod) for column in relation.columns]
