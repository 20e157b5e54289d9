"""What the accepted shape of a table says of it, held against the catalog now. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.shapes.shape import Shape
from penstock.shapes.source_table import Attach, Leaf, SourceTable


def filter_changed(before: Shape, now: SourceTable) -> bool:
    """Return whether the publication sends other rows."""
    return before.filter != now.filter_digest


def new_files(before: Shape, now: SourceTable, cleared: frozenset[int]) -> tuple[Leaf, ...]:
    """Return the leaves with another file than at the last look, or, where they are new, than they were made with."""
    return tuple(
        leaf for leaf in now.leaves if leaf.oid not in cleared and file_before(before, leaf) != leaf.relfilenode
    )


def file_before(before: Shape, leaf: Leaf) -> int:
    """Return the file that a leaf had: a table is made with a file of its own oid, and gets another when it is rewritten."""
    known = before.leaves.get(leaf.oid)
    if known is not None:
        return known.file
    return leaf.oid if leaf.kind == "r" and not leaf.attached else leaf.relfilenode


def rewritten(before: Shape, now: SourceTable) -> tuple[Leaf, ...]:
    """Return the partitions that are new and have another file than the one that they were made with."""
    new = (leaf for leaf in now.leaves if leaf.kind == "r" and leaf.oid not in before.leaves)
    return tuple(leaf for leaf in new if leaf.relfilenode != leaf.oid)


def with_defaults(before: Shape, now: SourceTable) -> SourceTable:
    """Return a table with what rows that the lake has show of columns added since: partitions that were there say it.

    One that was attached may have had a column of the same name, with another default, before the table had it.
    """
    if now.kind != "p":
        return now
    shown = {name: text for leaf in now.leaves if leaf.oid in before.leaves for name, text in leaf.missing}
    columns = tuple(
        each if each.attnum in before.columns else replace(each, missing_text=shown.get(each.name))
        for each in now.columns
    )
    return replace(now, columns=columns)


def attached(before: Shape, now: SourceTable) -> Iterator[tuple[Leaf, tuple[Attach, ...]]]:
    """Yield the leaves that are new and were tables of their own before, with each ATTACH since the last look."""
    known = {version for leaf in before.leaves.values() for version in leaf.chain}
    for leaf in now.leaves:
        since = tuple(each for each in leaf.attached if each.version not in known)
        if since and leaf.oid not in before.leaves:
            yield leaf, since
