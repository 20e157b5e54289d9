"""What the ledger knows of a table's shape: the one that was accepted last, and what the stream still has to say of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

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
class Rewriting:
    """Hold altered columns of a rewritten table of which it is to be told up to `through` that their values were kept.

    `versions` are those of their catalog rows at the look, `types` (oid and typmod) those under which they were right. `retyped` are
    changes that are told when it is sure, with their transactions. `checked`: a window has been held against it.
    """

    through: Position
    versions: Mapping[int, str]
    types: Mapping[int, tuple[int, int]]
    retyped: tuple[tuple[str, int | None], ...]
    checked: bool


@dataclass(frozen=True, slots=True)
class Accepted:
    """Hold the accepted shape of a table, what keeps it from being that of the last look, and the partitions that are gone.

    `undecided` are leaves whose file the stream may explain up to a position, `seen_in_stream` those of them of which it brought rows; `grown`
    are enums whose landed labels are checked up to one.
    """

    shape: Shape
    undecided: Mapping[int, Position] = field(default_factory=dict)
    seen_in_stream: tuple[int, ...] = ()
    grown: Mapping[int, Position] = field(default_factory=dict)
    rewritten: Rewriting | None = None
    gone: tuple[GonePartition, ...] = ()

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
