"""What the ledger knows of a source table: its columns in the lake, the shape that was accepted last, and what is open of it. Pure.

What a question holds back is in the accepted shape as it was before, so that each look until the answer compares it with that.

At a look that misses a partition no row of its bounds is in the source, if no other partition can take one. The rows go at a
position after that look, where a cut is made: what comes into the same bounds later belongs to later cuts. Whatever a window up
to that position brings of another partition with such rows cannot be told from them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from penstock.codec import JsonForm
from penstock.lsn import Lsn
from penstock.shapes import partition_bounds
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.partition_bounds import Bound
from penstock.shapes.source_table import Shape, SourceTable


@dataclass(frozen=True, slots=True)
class GonePartition:
    """Name a partition whose rows are gone, its bound with columns by attnum, and the position at which they go.

    `kept` says that they stay in the lake instead. Of one that was truncated, and is there still, `snapshot` is the text of
    the snapshot in which it was empty. `file` is the file that it had with these rows.
    """

    oid: int
    name: str
    bound: Bound
    lsn: Lsn | None = None
    kept: bool = False
    snapshot: str | None = None
    file: int | None = None

    def separate(self, now: SourceTable) -> bool:
        """Return whether its bound tells its rows in the lake, and no other partition of now can hold such a row."""
        others = (leaf.bound for leaf in now.leaves if leaf.oid != self.oid)
        return partition_bounds.found_in_lake(self.bound) and all(map(self.apart, others))

    def apart(self, bound: Bound) -> bool:
        """Return whether no row of its bound is within the other."""
        return partition_bounds.apart(self.bound, bound)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Hold what is said of an altered column only when its values are known to have been kept.

    `type` (oid and typmod) is the one under which they were right, `version` that of the column's catalog row at the look, and
    `events` are changes of it, with their transactions.
    """

    type: tuple[int, int]
    version: str
    events: tuple[tuple[str, int | None], ...] = ()


Asks = Literal["file", "values", "label"]


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """Ask what windows up to `through` have to answer.

    What explains the new `file` of a leaf; whether a rewrite has kept the `values` of a column; whether rows have landed with a `label`
    that the enum does not have any more. The subject is that leaf, column or type. `checked`: a window has been held against it.
    """

    asks: Asks
    subject: int
    through: Lsn
    checked: bool = False
    held_back: HeldBack | None = None


@dataclass(frozen=True, slots=True)
class Accepted(JsonForm):
    """Hold the accepted shape of a table, what the next windows have to answer of it, and the partitions that are gone."""

    shape: Shape
    questions: tuple[OpenQuestion, ...] = ()
    gone: tuple[GonePartition, ...] = ()

    def asked(self, asks: Asks) -> dict[int, OpenQuestion]:
        """Return the open questions of one kind, by subject."""
        return {each.subject: each for each in self.questions if each.asks == asks}

    @property
    def leaving(self) -> tuple[GonePartition, ...]:
        """Return the partitions whose rows went, or are to go."""
        return tuple(each for each in self.gone if not each.kept)

    @property
    def kept(self) -> tuple[GonePartition, ...]:
        """Return the partitions whose rows only the lake has."""
        return tuple(each for each in self.gone if each.kept)

    def leaving_after(self, position: Lsn) -> tuple[GonePartition, ...]:
        """Return those whose rows go at a place after a position."""
        return tuple(each for each in self.leaving if each.lsn is not None and each.lsn > position)


@dataclass(frozen=True)
class TableFacts:
    """Describe one source table, its target, and the columns of the lake's table.

    `identity` is `d`, `i`, `f` or `n`. `renamed_to` is the name that the lake's table takes in the next cut, None where it keeps
    `target`.
    """

    oid: int
    schema: str
    name: str
    target: tuple[str, ...]
    identity: str
    columns: tuple[MirrorColumn, ...]
    accepted: Accepted
    renamed_to: tuple[str, ...] | None = None

    @property
    def qualified(self) -> str:
        """Name the source table for a message."""
        return f"{self.schema}.{self.name}"


def with_held_back(now: Shape, before: Shape, leaves: Collection[int], columns: Collection[int]) -> Shape:
    """Return a shape in which these leaves and columns are to be compared again with what they were before.

    A leaf has the file of before, or is new, or is there still; a column has the version of before, or one that no other is like.
    """
    kept = {oid: leaf for oid, leaf in before.leaves.items() if oid in leaves}
    files = {oid: replace(leaf, file=kept[oid].file) for oid, leaf in now.leaves.items() if oid in kept}
    others = {oid: leaf for oid, leaf in now.leaves.items() if oid not in leaves}
    held = {attnum: before.versions.get(attnum, "") for attnum in columns}
    return replace(now, leaves=others | kept | files, versions={**now.versions, **held})


def gone_partitions(before: Shape, now: SourceTable, empty_in: Mapping[int, str]) -> Iterator[GonePartition]:
    """Yield the partitions that are not there any more since the last look, or are empty, given with the snapshots that show it."""
    there = {leaf.oid for leaf in now.leaves}
    for oid, leaf in before.leaves.items():
        if oid not in there or oid in empty_in:
            yield GonePartition(oid, leaf.name, leaf.bound, snapshot=empty_in.get(oid), file=leaf.file)


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


def lost_partitions(before: Shape, files: Mapping[int, int | None]) -> list[str]:
    """Name the partitions of a shape that are not among those given with their files, or have another one there (None: any)."""
    return [leaf.name for oid, leaf in before.leaves.items() if oid not in files or files[oid] not in (None, leaf.file)]
