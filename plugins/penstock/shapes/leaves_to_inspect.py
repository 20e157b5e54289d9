"""Which leaves of a table have to be looked at before it is judged: their catalog rows alone do not show what is in them. Pure.

A TRUNCATE, a rewriting ALTER TABLE and VACUUM FULL all give a table a new file. Together with a changed column it means that
stored values changed. Of the rest the rows themselves, or the stream, have to show that nothing is hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.shapes.changes import LeafAttached
from penstock.shapes.diff import added_columns, altered_columns, attached_leaves, changed_files
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import Leaf, SourceTable


@dataclass(frozen=True, slots=True)
class LeavesToInspect:
    """Name the leaves whose rows decide: those with a new file, and those that were not there at the last look."""

    files: tuple[Leaf, ...] = ()
    arrived: tuple[LeafAttached, ...] = ()


def leaves_to_inspect(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> LeavesToInspect:
    """Name the leaves whose rows have to be looked at; at most looks there are none."""
    files = tuple(each.leaf for each in changed_files(before, now))
    if not (now.changes_silently or values_changed(columns, before, now)):
        files = ()
    return LeavesToInspect(files, tuple(attached_leaves(before, now)) if now.kind == "p" else ())


def values_changed(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> bool:
    """Return whether columns changed in a way that means other stored values if a file is new as well."""
    added = (each.missing_text is None for each in added_columns(columns, now))
    return any(altered_columns(columns, before, now)) or any(added)


def altered_with_its_rows(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> bool:
    """Return whether a transaction that wrote a new file has altered or added a column too.

    Where another one has, the file may be that of a TRUNCATE, and no row older than that.
    """
    files = {str(each.leaf.changed_by) for each in changed_files(before, now)}
    added = (each for each in added_columns(columns, now) if each.missing_text is None)
    return any(each.version in files for each in (*altered_columns(columns, before, now), *added))
