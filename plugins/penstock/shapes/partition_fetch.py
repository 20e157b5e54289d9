"""Whether rows of some partitions are all that a change of a partitioned table leaves open: then these are read, not the table. Pure.

A partition that has been attached since the last look, as it is now, has sent every change to the rows within its bounds, and no
other could hold such rows meanwhile. All other rows of the lake are replaced by those of the other partitions: whatever came and went.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.lsn import Lsn
from penstock.shapes import enum_labels, partition_bounds
from penstock.shapes.accepted import Accepted, GonePartition
from penstock.shapes.column_fetch import Doubt
from penstock.shapes.partition_bounds import Bound
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import Leaf, SourceTable

_START = Lsn(0)
BoundData = list[list[Any]]
"""A bound as plain data, its columns by number."""


@dataclass(frozen=True, slots=True)
class PartitionFetch:
    """Name the leaves to read by oid; their rows replace those of the lake that are within none of the bounds that stay.

    `changed` names the partitions that are read or missing; `kept` are those of which the lake keeps rows that only it has.
    """

    leaves: frozenset[int]
    stays: tuple[BoundData, ...]
    changed: tuple[str, ...] = ()
    kept: tuple[GonePartition, ...] = ()


def partition_fetch(
    doubts: Sequence[Doubt],
    accepted: Accepted,
    now: SourceTable,
    gone: Collection[GonePartition] = (),
    *,
    keep: bool = False,
    through: Lsn = _START,
) -> PartitionFetch | None:
    """Return the fetch that ends these doubts, or None where only a copy of the table does.

    `gone` are the partitions that are missing or were truncated; `keep` says that the lake is to keep their rows; `through`
    is how far it has the table.
    """
    if now.kind != "p" or accepted.shape.kind != "p" or any(doubt.leaf is None for doubt in doubts):
        return None
    if _labels_are_open(accepted, now):
        return None
    before, there = accepted.shape, {column.attnum for column in now.columns}
    bounds = {oid: leaf.bound for oid, leaf in now.shape.leaves.items()}
    open_ = accepted.leaving_after(through)
    doubted = {doubt.leaf for doubt in doubts}
    staying = {
        leaf.oid
        for leaf in now.leaves
        if leaf.oid not in doubted
        and _was_there(before, leaf)
        and len(bounds[leaf.oid]) == len(leaf.chain)
        and partition_bounds.found_in_lake(leaf.bound)
        and all(each.apart(bounds[leaf.oid]) for each in open_)
    }
    read = {leaf.oid: leaf for leaf in now.leaves if leaf.oid not in staying}
    kept = [*accepted.kept, *((replace(each, kept=True) for each in gone) if keep else ())]
    kept = [each for each in kept if not _is_back(each, read.get(each.oid), bounds)]
    if not staying or (keep and any(_may_have_lost_rows(before, leaf) for leaf in read.values())):
        return None
    going = [*(bounds[oid] for oid in read), *(() if keep else (each.bound for each in gone))]
    if any(not _is_told(each, going, there) for each in kept):
        return None
    stays = [bounds[oid] for oid in sorted(staying)] + [each.bound for each in kept]
    changed = {*(leaf.name for leaf in read.values()), *(() if keep else (each.name for each in gone))}
    return PartitionFetch(
        frozenset(oid for oid, leaf in read.items() if leaf.kind == "r" and leaf.persistence == "p"),
        tuple(map(partition_bounds.data, partition_bounds.joined(stays))),
        tuple(sorted(changed)),
        tuple(kept),
    )


def _was_there(before: Shape, leaf: Leaf) -> bool:
    known = before.leaves.get(leaf.oid)
    return known is not None and known.chain == leaf.chain


def _is_back(kept: GonePartition, leaf: Leaf | None, bounds: Mapping[int, Bound]) -> bool:
    """Return whether a partition whose rows only the lake has is there again, with the rows that it had."""
    return (
        leaf is not None and kept.snapshot is None and kept.file == leaf.relfilenode and kept.bound == bounds[leaf.oid]
    )


def _may_have_lost_rows(before: Shape, leaf: Leaf) -> bool:
    """Return whether a partition may have been truncated: what is to be kept of it is in no other place than the lake."""
    known = before.leaves.get(leaf.oid)
    return known is not None and known.file != leaf.relfilenode


def _is_told(kept: GonePartition, bounds: Iterable[Bound], there: Collection[int]) -> bool:
    """Return whether the lake tells the rows of a partition that is kept from those that are to be replaced."""
    known = all(each.column in there for each in kept.bound)
    return known and partition_bounds.found_in_lake(kept.bound) and all(map(kept.apart, bounds))


def _labels_are_open(accepted: Accepted, now: SourceTable) -> bool:
    return bool(accepted.grown) or bool(enum_labels.grown(accepted.shape, now))
