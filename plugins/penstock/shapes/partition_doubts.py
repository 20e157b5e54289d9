"""Why a partitioned table cannot be followed: partitions that came, went, or were changed by themselves. Pure.

Most of that is in no message: PostgreSQL logs rows, and neither ATTACH nor DETACH, nor DROP, nor TRUNCATE of a partition alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.shapes.accepted import Accepted, GonePartition
from penstock.shapes.column_changes import ColumnChange, Following, Rule
from penstock.shapes.column_fetch import Doubt
from penstock.shapes.last_look import attached
from penstock.shapes.replica_identity import strange_partitions
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import SourceTable


def vanished_partition(name: str) -> str:
    """Say why rows of a partition that came and went between two looks make the table differ."""
    return f"partition {name} took rows and was detached or dropped with them between two looks"


def gone_change(gone: GonePartition) -> ColumnChange:
    """Return the event that says what becomes of a gone partition's rows."""
    rule: Rule = "drop-partition" if gone.snapshot is None else "truncate-partition"
    rows = "the lake keeps its rows" if gone.kept else "its rows go"
    return ColumnChange(rule, f"partition {gone.name} was {_lost(gone)}, and {rows}")


def gone_doubts(
    accepted: Accepted, now: SourceTable, gone: Iterable[GonePartition], following: Following
) -> Iterator[Doubt]:
    """Name the gone partitions whose rows the lake can neither let go by their bounds nor keep."""
    for each in gone:
        what = f"partition {each.name} was {_lost(each)} with its rows"
        if following.partitions is None:
            # what is not ready yet is copied again, whatever was chosen
            yield Doubt(
                f"{what}, and lake.on_dropped_partition does not say what follows" if following.columns else what
            )
        elif following.partitions == "follow":
            yield from _follow_doubts(accepted, now, each, what)


def _follow_doubts(accepted: Accepted, now: SourceTable, each: GonePartition, what: str) -> Iterator[Doubt]:
    if not each.separate(now):
        yield Doubt(f"{what}, and its bounds do not tell them from others in the lake", leaf=each.oid)
    for other in accepted.kept:
        if not other.apart(each.bound):
            yield Doubt(
                f"{what}, and the lake keeps rows of {other.name} within the same bounds, which would go with them",
                leaf=each.oid,
            )


def _lost(gone: GonePartition) -> str:
    return "detached or dropped" if gone.snapshot is None else "truncated by itself"


def partition_doubts(
    before: Shape, now: SourceTable, cleared: frozenset[int], unused: frozenset[int]
) -> Iterator[Doubt]:
    """Name the partitions that are there and may hold, or log, something else than the stream shows."""
    if now.kind == "p":
        yield from _membership_doubts(before, now, cleared, unused)
        yield from _logging_doubts(before, now)
        yield from _identity_doubts(before, now)
        yield from _flip_doubts(before, now)


def _membership_doubts(
    before: Shape, now: SourceTable, cleared: frozenset[int], unused: frozenset[int]
) -> Iterator[Doubt]:
    for leaf, _ in attached(before, now):
        if leaf.oid not in cleared:
            yield Doubt(
                f"partition {leaf.name} was attached, and nothing tells rows that it had then from rows that it took since",
                leaf=leaf.oid,
            )
        elif leaf.kind == "r" and leaf.relfilenode != leaf.oid and leaf.oid not in unused:
            # what is empty now may have taken rows since
            yield Doubt(
                f"partition {leaf.name} was attached and rewritten or truncated: rows that it took may be gone",
                leaf=leaf.oid,
            )
    for leaf in now.leaves:
        known = before.leaves.get(leaf.oid)
        if known is not None and known.chain != leaf.chain:
            yield Doubt(
                f"partition {leaf.name} was detached and attached again, and may have changed meanwhile", leaf=leaf.oid
            )


def _logging_doubts(before: Shape, now: SourceTable) -> Iterator[Doubt]:
    for leaf in now.leaves:
        known = before.leaves.get(leaf.oid)
        if leaf.persistence != "p" and (known is None or known.persistence == "p"):
            yield Doubt(f"partition {leaf.name} is unlogged: the stream has none of its changes", leaf=leaf.oid)
        if leaf.kind == "f" and known is None:
            yield Doubt(f"partition {leaf.name} is a foreign table: the stream has none of its changes", leaf=leaf.oid)


def _identity_doubts(before: Shape, now: SourceTable) -> Iterator[Doubt]:
    """Name partitions that log other old rows than the table's key needs, when that is new."""
    for leaf in strange_partitions(now):
        known = before.leaves.get(leaf.oid)
        if known is None or (known.identity, known.key) != (leaf.identity, tuple(sorted(leaf.key))):
            yield Doubt(f"partition {leaf.name} has another replica identity than the partitioned table", leaf=leaf.oid)


def _flip_doubts(before: Shape, now: SourceTable) -> Iterator[Doubt]:
    """Name partitions of a table without a key that may have logged less than whole old rows for a while."""
    for leaf in now.leaves:
        known = before.leaves.get(leaf.oid)
        altered_by = now.altered_by(leaf)
        if known is not None and altered_by is not None and altered_by != known.altered_by:
            yield Doubt(
                f"partition {leaf.name} was altered and has a unique index: it may have had another replica identity for a while",
                leaf=leaf.oid,
            )
