"""Whether values of some columns are all that a change of a table leaves open: then these are fetched, not the whole table. Pure.

A fetch is exact where every row of the lake is found again by its key, and nothing but these columns is in doubt. What else
is in doubt, or cannot be told while the table is paused, is left to a copy of the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.shapes import enum_labels
from penstock.shapes.accepted import Accepted
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import SourceColumn, SourceTable
from penstock.values.lake_types import holds, innermost
from penstock.values.pgtype import PgType

_SENT = frozenset({"insert", "update", "delete"})


@dataclass(frozen=True, slots=True)
class Doubt:
    """Say why a table is not what the stream made of it; by which column, enum or partition alone, if it is no more than that."""

    text: str
    attnum: int | None = None
    enum: int | None = None
    leaf: int | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """Name the columns to fetch by attnum: of all rows, or of those that hold one of the `labels` in one of these columns."""

    attnums: frozenset[int]
    labels: tuple[str, ...] | None = None

    @property
    def whole(self) -> bool:
        """Return whether every row's values are fetched."""
        return self.labels is None


def fetch_of(doubts: Sequence[Doubt], accepted: Accepted, now: SourceTable) -> Fetch | None:
    """Return the fetch that ends all of these doubts, or None where only a copy of the table does."""
    if any(doubt.attnum is None and doubt.enum is None for doubt in doubts) or not _rows_are_known(accepted, now):
        return None
    by_attnum = {column.attnum: column for column in now.columns}
    whole = {doubt.attnum for doubt in doubts if doubt.attnum is not None}
    # labels that landed rows would be held against are fetched, too: no window looks at a paused table
    grown = frozenset(enum_labels.grown(accepted.shape, now))
    renamed = {doubt.enum for doubt in doubts if doubt.enum is not None}
    enums = renamed | grown | (accepted.grown.keys() & now.enums.keys())
    holders = _holders(now.columns, enums)
    if not whole <= by_attnum.keys():
        return None
    attnums = frozenset(whole | {column.attnum for column in holders})
    if any(by_attnum[attnum].key for attnum in attnums):
        return None
    plain = not whole and all(_is_label(column.type) for column in holders) and not accepted.grown
    return Fetch(attnums, _new_labels(accepted.shape, now, enums) if plain else None)


def sends_all(sent: Iterable[str]) -> bool:
    """Return whether a publication sends what makes the lake's rows those of the source."""
    return set(sent) >= _SENT


def refilled(columns: Sequence[MirrorColumn], before: Sequence[MirrorColumn], fetch: Fetch) -> tuple[MirrorColumn, ...]:
    """Return a table's columns after a fetch: one whose new type the lake's field cannot become is another field from now on."""
    known = {column.attnum: column for column in before}
    return tuple(
        _refilled(column, known.get(column.attnum)) if column.attnum in fetch.attnums and fetch.whole else column
        for column in columns
    )


def _refilled(column: MirrorColumn, before: MirrorColumn | None) -> MirrorColumn:
    generation = column.generation
    if before is not None:
        generation += not holds(column.lake_type, before.lake_type)
    return replace(column, missing_text=None, generation=generation)


def _rows_are_known(accepted: Accepted, now: SourceTable) -> bool:
    """Return whether the lake's rows are those of the source by key, whatever their values.

    Partitions may come and go while no window looks at them, and a filter may let other rows through than it did.
    """
    return (
        now.kind == "r"
        and bool(now.key)
        and now.identity != "n"
        and now.filter_digest is None
        and not (now.changes_silently and accepted.undecided)
    )


def _holders(columns: Sequence[SourceColumn], enums: Iterable[int]) -> list[SourceColumn]:
    """Return the columns that hold values of these enums, by themselves or within others."""
    wanted = set(enums)
    return [column for column in columns if wanted & column.parts]


def _is_label(type: PgType) -> bool:
    """Return whether a type's text is a label, and nothing else."""
    return innermost(type).kind == "e"


def _new_labels(before: Shape, now: SourceTable, enums: Iterable[int]) -> tuple[str, ...]:
    """Return the labels whose catalog rows are others than at the last look: rows may show them under another name."""
    return tuple(
        sorted(
            {
                label
                for oid in enums
                for label, version in zip(now.enums[oid], now.part_versions[oid], strict=True)
                if version not in before.part_versions.get(oid, ())
            }
        )
    )
