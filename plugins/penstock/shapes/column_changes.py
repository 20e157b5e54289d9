"""What became of a table's columns between two looks at the catalog, and whether the lake follows by metadata alone. Pure.

Columns are known by attnum: a new name is a rename, whatever else has that name now. A change of type is followed where the
server kept every stored value, which the caller sees by the table's file, and renders it as before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from penstock.shapes.column_fetch import Doubt
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.source_table import SourceColumn, SourceTable
from penstock.shapes.table_facts import column_plan
from penstock.values.defaults import Unsupported, default_literal
from penstock.values.lake_types import innermost
from penstock.values.pgtype import PgType, type_name
from penstock.values.type_change import followed, sent_as_real, widened, widened_real

Rule = Literal[
    "add-column",
    "rename-column",
    "drop-column",
    "retype-column",
    "replica-identity",
    "change-key",
    "drop-key",
    "rename-table",
    "drop-partition",
    "truncate-partition",
]


@dataclass(frozen=True, slots=True)
class Following:
    """Say what is followed besides an added column, and whether the lake keeps a column that the source has dropped.

    `partitions` is what becomes in the lake of the rows of a dropped partition, None where nobody has chosen. `sends_old`: updates
    or deletes are sent, which have to find their rows.
    """

    columns: bool = True
    keep_dropped: bool = True
    partitions: Literal["follow", "keep"] | None = None
    sends_old: bool = True


ADDED_ONLY = Following(columns=False)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Name a change that the lake follows: by which rule, in words, and the 32-bit id of its transaction where the catalog has it."""

    rule: Rule
    text: str
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """Hold a table's columns after the changes, and the reasons for which some of these cannot be followed."""

    columns: tuple[MirrorColumn, ...]
    changes: tuple[ColumnChange, ...]
    doubts: tuple[Doubt, ...]


def follow(
    columns: Sequence[MirrorColumn], now: SourceTable, following: Following, kept: Collection[int] = ()
) -> Followed:
    """Compare the known columns with the catalog's; the commands that altered `kept` ones have kept their values."""
    there = {column.attnum: column for column in now.columns}
    after, changes, doubts = list[MirrorColumn](), list[ColumnChange](), list[Doubt]()
    for column in columns:
        found = there.pop(column.attnum, None)
        if column.dropped:
            after.append(column)
        elif found is None:
            reason = _why_not_dropped(column, now, following)
            doubts += [Doubt(reason)] if reason else []
            changes.append(ColumnChange("drop-column", f"column {column.name} was dropped"))
            if following.keep_dropped:
                after.append(replace(column, dropped=True, missing_text=None, key=False))
        else:
            after.append(_with_shape(column, found))
            made, wrong = _compared(column, found, following, kept)
            changes += made
            doubts += wrong
    for new in there.values():
        after.append(column_plan(new))
        changes.append(ColumnChange("add-column", f"column {new.name} was added", _xid(new)))
        doubts += _default_doubts(new)
    return Followed(_with_free_names(after), tuple(changes), tuple(doubts))


def _with_shape(column: MirrorColumn, found: SourceColumn) -> MirrorColumn:
    """Return a column as the catalog has it now; whether it is text in the lake is decided by a copy alone."""
    return replace(
        column,
        name=found.name,
        type=found.type,
        key=found.key,
        missing_text=_missing_text(column, found),
        dimensions=found.dimensions,
    )


def _default_doubts(new: SourceColumn) -> list[Doubt]:
    """Name an added column of which Iceberg cannot show what old rows have: a list or map, or a value beyond the lake's type."""
    if new.missing_text is None or new.as_text:
        return []
    found = default_literal(new.type, new.missing_text)
    if not isinstance(found, Unsupported):
        return []
    why = f"column {new.name} was added with a constant default that the lake's column cannot have: {found.reason}"
    return [Doubt(why, new.attnum)]


def _why_not_dropped(column: MirrorColumn, now: SourceTable, following: Following) -> str | None:
    if column.attnum in now.hidden_attnums:
        return f"column {column.name} is not in the stream any more: it is generated or not published"
    if not following.columns:
        return f"column {column.name} was dropped"
    if column.key and not following.keep_dropped:
        return f"column {column.name} was dropped, and older changes find their rows by it"
    return None


def _compared(
    column: MirrorColumn, found: SourceColumn, following: Following, kept: Collection[int]
) -> tuple[list[ColumnChange], list[Doubt]]:
    """Return what changed of a column that is there still, and why that is not followed."""
    changes, doubts = list[ColumnChange](), list[Doubt]()
    if found.name != column.name:
        renamed = f"column {column.name} was renamed to {found.name}"
        changes.append(ColumnChange("rename-column", renamed, _xid(found)))
        doubts += [] if following.columns else [Doubt(renamed)]
    if not _same_type(found.type, column.type):
        retyped = f"column {found.name} changed its type from {type_name(column.type)} to {type_name(found.type)}"
        changes.append(ColumnChange("retype-column", retyped, _xid(found)))
        same = followed(column.type, found.type) or (found.attnum in kept and _widened(column, found))
        doubts += [] if following.columns and same else [Doubt(retyped, found.attnum)]
    return changes, doubts


def _widened(column: MirrorColumn, found: SourceColumn) -> bool:
    """Return whether a told cast is metadata: a key of `real` is not, since rows are found by the texts of their keys."""
    rounded = sent_as_real(innermost(column.type).oid, found.type)
    return widened(column.type, found.type) and not (rounded and (column.key or found.key))


def _missing_text(column: MirrorColumn, found: SourceColumn) -> str | None:
    """Return what rows of before the column show under its present type."""
    text = column.missing_text
    return widened_real(text) if text and sent_as_real(innermost(column.type).oid, found.type) else text


def _xid(column: SourceColumn) -> int | None:
    """Return who wrote the column's row of the catalog last."""
    return int(column.version) if column.version.isdigit() else None


def _same_type(one: PgType | None, other: PgType | None) -> bool:
    """Compare types by what they are, not by name: one that is only renamed holds the same values."""
    if one is None or other is None:
        return one is other
    return (
        (one.oid, one.typmod, one.kind) == (other.oid, other.typmod, other.kind)
        and _same_type(one.base, other.base)
        and _same_type(one.element, other.element)
    )


def _with_free_names(columns: Sequence[MirrorColumn]) -> tuple[MirrorColumn, ...]:
    """Give a dropped column another name in the lake where a new one has taken its name."""
    taken = {column.name for column in columns if not column.dropped}
    named = list[MirrorColumn]()
    for column in columns:
        name = _free(column, taken) if column.dropped else column.name
        taken |= {name}
        named.append(replace(column, name=name))
    return tuple(named)


def _free(column: MirrorColumn, taken: Collection[str]) -> str:
    name, wanted = column.name, f"{column.name}__dropped_{column.attnum}"
    while name in taken:
        name, wanted = wanted, f"{wanted}_"
    return name
