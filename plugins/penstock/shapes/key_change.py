"""What became of a table's key and replica identity, and whether that is followed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.shapes.column_changes import ColumnChange, Following
from penstock.shapes.column_fetch import Doubt
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import SourceColumn, SourceTable

_IDENTITIES = {"d": "the primary key", "i": "an index", "f": "full"}


def key_change(
    columns: Sequence[MirrorColumn], identity: str, shape: Shape, now: SourceTable, following: Following
) -> tuple[ColumnChange, ...] | None:
    """Return what became of the key and the replica identity, None where that is not followed: of partitions each has its own.

    Each change of a row says itself which columns it is found by.
    """
    before, after = _key(columns), _key(now.columns)
    if before.keys() == after.keys() and identity == now.identity:
        return ()
    if not following.columns:
        return None
    if before and before.keys() == after.keys() and "n" not in (identity, now.identity):
        text = f"the replica identity is {_IDENTITIES[now.identity]} now, with the same key"
        return (ColumnChange("replica-identity", text),)
    if now.kind != "r" or shape.kind != "r":
        return None
    why = ", because the primary key is deferrable" if now.late_key else ""
    text = f"the key is {_named(after, now.identity)} now{why}, it was {_named(before, identity)}"
    return (ColumnChange("drop-key" if now.identity == "n" else "change-key", text),)


def key_doubts(columns: Sequence[MirrorColumn], identity: str, now: SourceTable) -> Iterator[Doubt]:
    """Say that the key changed, where that cannot be followed."""
    before = {column.attnum for column in columns if column.key}
    if identity == now.identity and before and now.late_key:
        yield Doubt("the key is deferrable now, in a partition at least, and tells no rows apart")
    elif identity != now.identity or before != {column.attnum for column in now.columns if column.key}:
        yield Doubt("the replica identity changed")


def _key(columns: Iterable[MirrorColumn | SourceColumn]) -> dict[int, str]:
    """Return the names of the key's columns by attnum."""
    return {column.attnum: column.name for column in columns if column.key}


def _named(key: Mapping[int, str], identity: str) -> str:
    if key:
        return f"({', '.join(key.values())})"
    return "the whole row" if identity == "f" else "none, for inserts only"
