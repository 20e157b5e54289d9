"""Which leaves have a new file, and what it may hold: other values than before, or other rows than were sent. Pure.

A TRUNCATE, a rewriting ALTER TABLE and VACUUM FULL all give a table a new file. Together with a changed column it means that
stored values changed. Of the rest the rows themselves, or the stream, have to show that nothing is hidden.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from penstock.shapes.column_fetch import Doubt
from penstock.shapes.last_look import attached, new_files, rewritten
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import Attach, Leaf, SourceColumn, SourceTable


@dataclass(frozen=True, slots=True)
class Suspects:
    """Name the leaves whose rows decide: those with a new file, and those that were not there at the last look.

    `rewritten` are partitions that are new and have another file than the one that they were made with.
    """

    files: tuple[Leaf, ...] = ()
    arrived: tuple[tuple[Leaf, tuple[Attach, ...]], ...] = ()
    rewritten: tuple[Leaf, ...] = ()


def suspects(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> Suspects:
    """Name the leaves whose rows have to be looked at before the verdict; for most looks there are none."""
    arrived = tuple(attached(before, now)) if now.kind == "p" else ()
    files = new_files(before, now, frozenset())
    if not (now.changes_silently or values_changed(columns, before, now)):
        files = ()
    return Suspects(files, arrived, rewritten(before, now) if now.kind == "p" else ())


def values_changed(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> bool:
    """Return whether columns changed in a way that means other stored values if a file is new as well."""
    return any(altered_doubts(columns, before, now)) or any(added_doubts(columns, now))


def altered_with_its_rows(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> bool:
    """Return whether a transaction that wrote a new file has altered or added a column too.

    Where another one has, the file may be that of a TRUNCATE, and no row older than that.
    """
    files = {str(leaf.changed_by) for leaf in new_files(before, now, frozenset())}
    added = (each for each in added_since(columns, now) if each.missing_text is None)
    return any(each.version in files for each in (*altered(columns, before, now), *added))


def added_since(columns: Sequence[MirrorColumn], now: SourceTable) -> list[SourceColumn]:
    """Return the columns that were not in the stream at the last look."""
    known = {column.attnum for column in columns}
    return [column for column in now.columns if column.attnum not in known]


def altered(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> list[SourceColumn]:
    """Return the known columns whose catalog row is another one than at the last look."""
    known = {column.attnum: before.columns[column.attnum] for column in columns if column.attnum in before.columns}
    return [each for each in now.columns if each.attnum in known and known[each.attnum].version != each.version]


def altered_doubts(
    columns: Sequence[MirrorColumn], before: Shape, now: SourceTable, kept: Collection[int] = ()
) -> Iterator[Doubt]:
    """Name the columns of which a new file may hold other values than before; `kept` ones are told to have the same."""
    for column in altered(columns, before, now):
        if column.attnum not in kept:
            yield Doubt(
                f"column {column.name} was altered and the table rewritten: its old rows may hold other values",
                column.attnum,
            )


def added_doubts(columns: Sequence[MirrorColumn], now: SourceTable) -> Iterator[Doubt]:
    """Name the added columns of which a new file may hold values: `vacuum full`, too, writes a default into old rows."""
    for added in added_since(columns, now):
        if added.missing_text is None:
            yield Doubt(
                f"column {added.name} was added and the table rewritten: a default may have been written into every row",
                added.attnum,
            )


def file_doubts(before: Shape, now: SourceTable, cleared: frozenset[int]) -> Iterator[Doubt]:
    """Name the leaves whose new file may lack rows, where neither the rows nor the stream have `cleared` them."""
    if now.changes_silently:
        what = "partition " if now.kind == "p" else ""
        for leaf in new_files(before, now, cleared):
            yield Doubt(
                f"{what}{leaf.name} has a new file, and nothing tells that it has the rows of before: it was truncated by itself, rewritten, "
                "or unlogged for a while",
                leaf=leaf.oid,
            )
