"""What the ledger knows of a table's shape: the one that was accepted last, and what the next windows have to answer of it. Pure.

What a question holds back is in the accepted shape as it was before, so that each look until the answer compares it with that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from penstock.lsn import Lsn
from penstock.shapes import partition_bounds
from penstock.shapes.partition_bounds import Bound
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import SourceTable


def _position(value: str | Lsn) -> Lsn:
    return value if isinstance(value, Lsn) else Lsn.parse(value)


Position = Annotated[Lsn, PlainValidator(_position), PlainSerializer(str)]
"""A position whose JSON is its text."""


@dataclass(frozen=True, slots=True)
class GonePartition:
    """Name a partition whose rows are gone, its bound with columns by attnum, and the position at which they go.

    `kept` says that they stay in the lake instead. Of one that was truncated, and is there still, `snapshot` is the text of
    the snapshot in which it was empty. `file` is the file that it had with these rows.
    """

    oid: int
    name: str
    bound: Bound
    lsn: Position | None = None
    kept: bool = False
    snapshot: str | None = None
    file: int | None = None

    def separate(self, now: SourceTable) -> bool:
        """Return whether its bound tells its rows in the lake, and no other partition of now can hold such a row."""
        others = (leaf.bound for oid, leaf in now.shape.leaves.items() if oid != self.oid)
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
    through: Position
    checked: bool = False
    held_back: HeldBack | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
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

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        data: dict[str, Any] = _CODEC.dump_python(self, mode="json")
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Accepted:
        """Read what `to_json` wrote."""
        return _CODEC.validate_python(data)


_CODEC = TypeAdapter(Accepted)


def with_held_back(now: Shape, before: Shape, leaves: Collection[int], columns: Collection[int]) -> Shape:
    """Return a shape in which these leaves and columns are to be compared again with what they were before.

    A leaf has the file of before, or is new, or is there still; a column has the version of before, or one that no other is like.
    """
    kept = {oid: leaf for oid, leaf in before.leaves.items() if oid in leaves}
    files = {oid: replace(leaf, file=kept[oid].file) for oid, leaf in now.leaves.items() if oid in kept}
    others = {oid: leaf for oid, leaf in now.leaves.items() if oid not in leaves}
    held = {
        attnum: replace(now.columns[attnum], version=before.columns[attnum].version if attnum in before.columns else "")
        for attnum in columns
    }
    return replace(now, leaves=others | kept | files, columns={**now.columns, **held})
