"""How little has to be read of a table that changed: values of some columns, or rows of some partitions, or else all of it. Pure.

Columns are enough where every row of the lake is found again by its key. Partitions are enough where one stays: it has been attached
since the last look, as it is now, so that it has sent every change within its bounds, and no other could hold such rows meanwhile.
All other rows of the lake are replaced by those of the other partitions: whatever came and went.

Before that, leaves whose catalog rows alone do not show what is in them are inspected. A TRUNCATE, a rewriting ALTER TABLE and VACUUM
FULL all give a table a new file. Together with a changed column it means that stored values changed. Of the rest the rows themselves,
or the stream, have to show that nothing is hidden.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.lsn import Lsn
from penstock.shapes import partition_bounds
from penstock.shapes.accepted import Accepted, GonePartition
from penstock.shapes.changes import LeafAttached
from penstock.shapes.diff import added_columns, altered_columns, attached_leaves, changed_files, grown_enums
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.partition_bounds import Bound
from penstock.shapes.source_table import Leaf, Shape, SourceTable
from penstock.values.lake_types import innermost

_SENT = frozenset({"insert", "update", "delete"})
BoundData = list[list[Any]]
"""A bound as plain data, its columns by number."""


@dataclass(frozen=True, slots=True)
class ColumnRead:
    """Name the columns to read by attnum: of all rows, or of those that hold one of the `labels` in one of these columns."""

    attnums: frozenset[int]
    labels: tuple[str, ...] | None = None

    @property
    def whole(self) -> bool:
        """Return whether every row's values are read."""
        return self.labels is None


@dataclass(frozen=True, slots=True)
class LeafRead:
    """Name the leaves to read by oid; their rows replace those of the lake that are within none of the bounds that stay.

    `changed` names the partitions that are read or missing; `kept` are those of which the lake keeps rows that only it has.
    """

    leaves: frozenset[int]
    stays: tuple[BoundData, ...]
    changed: tuple[str, ...] = ()
    kept: tuple[GonePartition, ...] = ()


def column_read(
    accepted: Accepted, now: SourceTable, whole: Collection[int], enums: Collection[int]
) -> ColumnRead | None:
    """Return the columns to read where all values of some, and rows with renamed labels of `enums`, are in doubt.

    None where only a copy of the table is enough.
    """
    before, checks = accepted.shape, accepted.asked("label")
    by_attnum = {column.attnum: column for column in now.columns}
    if not _rows_are_known(accepted, now) or not set(whole) <= by_attnum.keys():
        return None
    # labels that landed rows would be held against are read, too: no window looks at a paused table
    enums = {*enums, *grown_enums(before, now), *(checks.keys() & now.enums.keys())}
    holders = [column for column in now.columns if enums & column.parts]
    attnums = frozenset({*whole, *(column.attnum for column in holders)})
    if any(by_attnum[attnum].key for attnum in attnums):
        return None
    # of these the text is a label, and nothing else
    plain = not whole and not checks and all(innermost(column.type).kind == "e" for column in holders)
    return ColumnRead(attnums, _new_labels(before, now, enums) if plain else None)


def sends_all(sent: Iterable[str]) -> bool:
    """Return whether a publication sends what makes the lake's rows those of the source."""
    return set(sent) >= _SENT


def leaf_read(
    accepted: Accepted,
    now: SourceTable,
    unsure: Collection[int],
    gone: Collection[GonePartition] = (),
    *,
    keep: bool,
    through: Lsn,
) -> LeafRead | None:
    """Return the partitions to read where rows of those that are `unsure` are in doubt, None where only a copy is enough.

    `gone` are the partitions that are missing or were truncated; `keep` says that the lake is to keep their rows; `through`
    is how far it has the table.
    """
    before = accepted.shape
    if (before.kind, now.kind) != ("p", "p") or accepted.asked("label") or grown_enums(before, now):
        return None
    there = {column.attnum for column in now.columns}
    bounds = {leaf.oid: leaf.bound for leaf in now.leaves}
    open_ = accepted.leaving_after(through)
    staying = {
        leaf.oid
        for leaf in now.leaves
        if leaf.oid not in unsure
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
    if any(not _is_distinct(each, going, there) for each in kept):
        return None
    stays = [bounds[oid] for oid in sorted(staying)] + [each.bound for each in kept]
    changed = {*(leaf.name for leaf in read.values()), *(() if keep else (each.name for each in gone))}
    return LeafRead(
        frozenset(oid for oid, leaf in read.items() if leaf.kind == "r" and leaf.persistence == "p"),
        tuple(map(partition_bounds.data, partition_bounds.joined(stays))),
        tuple(sorted(changed)),
        tuple(kept),
    )


def _rows_are_known(accepted: Accepted, now: SourceTable) -> bool:
    """Return whether the lake's rows are those of the source by key, whatever their values.

    Partitions may come and go while no window looks at them, and a filter may let other rows through than it did.
    """
    return (
        now.kind == "r"
        and bool(now.key)
        and now.identity != "n"
        and now.filter is None
        and not (now.changes_silently and accepted.asked("file"))
    )


def _new_labels(before: Shape, now: SourceTable, enums: Iterable[int]) -> tuple[str, ...]:
    """Return the labels whose catalog rows are others than at the last look: rows may show them under another name."""
    new = set[str]()
    for oid in enums:
        known = before.part_versions.get(oid, ())
        new |= {label for label, row in zip(now.enums[oid], now.part_versions[oid], strict=True) if row not in known}
    return tuple(sorted(new))


def _was_there(before: Shape, leaf: Leaf) -> bool:
    known = before.leaves.get(leaf.oid)
    return known is not None and known.chain == leaf.chain


def _is_back(kept: GonePartition, leaf: Leaf | None, bounds: Mapping[int, Bound]) -> bool:
    """Return whether a partition whose rows only the lake has is there again, with the rows that it had."""
    return leaf is not None and kept.snapshot is None and kept.file == leaf.file and kept.bound == bounds[leaf.oid]


def _may_have_lost_rows(before: Shape, leaf: Leaf) -> bool:
    """Return whether a partition may have been truncated: what is to be kept of it is in no other place than the lake."""
    known = before.leaves.get(leaf.oid)
    return known is not None and known.file != leaf.file


def _is_distinct(kept: GonePartition, bounds: Iterable[Bound], there: Collection[int]) -> bool:
    """Return whether the lake tells the rows of a partition that is kept from those that are to be replaced."""
    known = all(each.column in there for each in kept.bound)
    return known and partition_bounds.found_in_lake(kept.bound) and all(map(kept.apart, bounds))


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
