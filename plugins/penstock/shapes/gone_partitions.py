"""Partitions that were dropped, detached or truncated: whose rows go from the lake, or are kept there and nowhere else. Pure.

At a look that misses a partition no row of its bounds is in the source, if no other partition can take one. The rows go at a
position after that look, where a cut is made: what comes into the same bounds later belongs to later cuts. Whatever a window up
to that position brings of another partition with such rows cannot be told from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.lsn import Lsn
from penstock.shapes import partition_bounds
from penstock.shapes.partition_bounds import Bound
from penstock.shapes.source_table import SourceTable

GONE = "gone"
"""The part of a digest that keeps the partitions whose rows go, or are kept though they are gone at the source."""


@dataclass(frozen=True, slots=True)
class GonePartition:
    """Name a partition whose rows are gone, its bounds as plain data with columns by number, and the position at which they go.

    `kept` says that they stay in the lake instead. Of one that was truncated, and is there still, `snapshot` is the text of
    the snapshot in which it was empty. `file` is the file that it had with these rows.
    """

    oid: int
    name: str
    bound: list[list[Any]]
    lsn: Lsn | None = None
    kept: bool = False
    snapshot: str | None = None
    file: int | None = None

    @property
    def conditions(self) -> Bound:
        """Return the bounds."""
        return partition_bounds.of(self.bound)

    def separate(self, now: SourceTable) -> bool:
        """Return whether its bounds tell its rows in the lake, and no other partition of now can hold such a row."""
        numbers = {column.name: column.attnum for column in now.columns}
        others = (partition_bounds.numbered(leaf.bound, numbers) for leaf in now.leaves if leaf.oid != self.oid)
        return partition_bounds.found_in_lake(self.conditions) and all(map(self.apart, others))

    def apart(self, bound: Sequence[Sequence[Any]]) -> bool:
        """Return whether no row of its bounds is within the others."""
        return partition_bounds.apart(self.conditions, partition_bounds.of(bound))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "oid": self.oid,
            "name": self.name,
            "bound": self.bound,
            "lsn": str(self.lsn),
            "kept": self.kept,
            "snapshot": self.snapshot,
            "file": self.file,
        }


def missing(digest: Mapping[str, Any], now: SourceTable) -> Iterator[GonePartition]:
    """Yield the partitions that were there at the last look and are not now."""
    there = {leaf.oid for leaf in now.leaves}
    yield from (each for each in _leaves(digest) if each.oid not in there)


def emptied(digest: Mapping[str, Any], leaves: Mapping[int, str]) -> Iterator[GonePartition]:
    """Yield the partitions that are empty since the last look, given with the snapshots that show it."""
    for each in _leaves(digest):
        if each.oid in leaves:
            yield replace(each, snapshot=leaves[each.oid])


def noted(digest: Mapping[str, Any]) -> Iterator[GonePartition]:
    """Yield the partitions whose rows went, are to go, or are kept."""
    for each in digest.get(GONE, ()):
        yield GonePartition(**{**each, "lsn": Lsn.parse(each["lsn"])})


def leaving(digest: Mapping[str, Any]) -> Iterator[GonePartition]:
    """Yield the partitions whose rows went, or are to go."""
    yield from (each for each in noted(digest) if not each.kept)


def kept(digest: Mapping[str, Any]) -> Iterator[GonePartition]:
    """Yield the partitions whose rows only the lake has."""
    yield from (each for each in noted(digest) if each.kept)


def open_at(digest: Mapping[str, Any], position: Lsn) -> Iterator[GonePartition]:
    """Yield those whose rows go at a place after a position."""
    yield from (each for each in leaving(digest) if each.lsn is not None and each.lsn > position)


def with_gone(digest: Mapping[str, Any], more: Iterable[GonePartition], through: Lsn | None) -> list[dict[str, Any]]:
    """Return what a digest is to keep of gone partitions; of those whose rows a cut `through` here let go, the first.

    A copy of before that one cannot be brought forward.
    """
    went = [each for each in leaving(digest) if through is not None and each.lsn is not None and each.lsn <= through]
    first = min(went, key=lambda each: each.lsn or Lsn(0), default=None)
    return [each.to_json() for each in noted(digest) if each not in went or each == first] + [
        each.to_json() for each in more
    ]


def taken_again(
    digest: Mapping[str, Any], taken: Iterable[int], since: Lsn
) -> Iterator[tuple[GonePartition, str | None]]:
    """Yield the partitions whose rows are still to go though others have taken rows of their bounds, of the leaves that have.

    With it comes the snapshot that must have seen whatever a partition took that is empty, and still there.
    """
    bounds = {each.oid: each.bound for each in _leaves(digest)}
    for each in open_at(digest, since):
        for oid in taken:
            if oid == each.oid and each.snapshot is not None:
                yield each, each.snapshot
            elif oid in bounds and not each.apart(bounds[oid]):
                yield each, None


def lost(digest: Mapping[str, Any], leaves: Mapping[str, int], *, files: bool) -> list[str]:
    """Name the partitions of a digest that are not in `leaves`, given with their files, or, if asked, have another file there."""
    before = digest["leaves"]
    return [name for oid, (_, name, file) in before.items() if oid not in leaves or (files and leaves[oid] != file)]


def _leaves(digest: Mapping[str, Any]) -> Iterator[GonePartition]:
    versions = digest["versions"]["leaves"]
    for oid, (_, name, file) in digest["leaves"].items():
        yield GonePartition(int(oid), name, versions[oid].get("bound") or [], file=file)


def file_of(digest: Mapping[str, Any], oid: int) -> int | None:
    """Return the file that a partition had at the last look, None for one that was not there."""
    known = digest["leaves"].get(str(oid))
    return None if known is None else int(known[2])
