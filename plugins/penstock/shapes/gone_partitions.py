"""Partitions that were dropped, detached or truncated: whose rows go from the lake, or are kept there and nowhere else. Pure.

At a look that misses a partition no row of its bounds is in the source, if no other partition can take one. The rows go at a
position after that look, where a cut is made: what comes into the same bounds later belongs to later cuts. Whatever a window up
to that position brings of another partition with such rows cannot be told from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, GonePartition
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import SourceTable


def missing(before: Shape, now: SourceTable) -> Iterator[GonePartition]:
    """Yield the partitions that were there at the last look and are not now."""
    there = {leaf.oid for leaf in now.leaves}
    yield from (each for each in _leaves(before) if each.oid not in there)


def emptied(before: Shape, leaves: Mapping[int, str]) -> Iterator[GonePartition]:
    """Yield the partitions that are empty since the last look, given with the snapshots that show it."""
    for each in _leaves(before):
        if each.oid in leaves:
            yield replace(each, snapshot=leaves[each.oid])


def with_gone(accepted: Accepted, more: Iterable[GonePartition], through: Lsn | None) -> tuple[GonePartition, ...]:
    """Return what is to be kept of gone partitions; of those whose rows a cut `through` here let go, the first.

    A copy of before that one cannot be brought forward.
    """
    went = [each for each in accepted.leaving if through is not None and each.lsn is not None and each.lsn <= through]
    first = min(went, key=lambda each: each.lsn or Lsn(0), default=None)
    return (*(each for each in accepted.gone if each not in went or each == first), *more)


def taken_again(accepted: Accepted, taken: Iterable[int], since: Lsn) -> Iterator[tuple[GonePartition, str | None]]:
    """Yield the partitions whose rows are still to go though others have taken rows of their bounds, of the leaves that have.

    With it comes the snapshot that must have seen whatever a partition took that is empty, and still there.
    """
    leaves = accepted.shape.leaves
    for each in accepted.leaving_after(since):
        for oid in taken:
            if oid == each.oid and each.snapshot is not None:
                yield each, each.snapshot
            elif oid in leaves and not each.apart(leaves[oid].bound):
                yield each, None


def lost(before: Shape, files: Mapping[int, int | None]) -> list[str]:
    """Name the partitions of a shape that are not among those given with their files, or have another one there (None: any)."""
    return [leaf.name for oid, leaf in before.leaves.items() if oid not in files or files[oid] not in (None, leaf.file)]


def _leaves(before: Shape) -> Iterator[GonePartition]:
    for leaf in before.leaves.values():
        yield GonePartition(leaf.oid, leaf.name, leaf.bound, file=leaf.file)
