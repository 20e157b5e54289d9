"""What Python makes of the control messages (R, Y, O, M) before the compiled pass runs.

Shapes, origins and skipping become numbers in small arrays, one entry per control message. A relation gets a new version
when its RELATION message says something new; the server repeats identical ones after any ANALYZE or CREATE INDEX. It also
gets one where the log of DDL has it that the same names are other columns now.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.wire.arrays import NONE, Catalogue, Controls
from penstock.wire.messages import LogicalMessage, Origin, PlainMessage, Relation, Type
from penstock.wire.pgoutput import RULES
from penstock.wire.readers import Cursor


@dataclass(frozen=True, slots=True)
class Partition:
    """Name a partition with a change that the stream brings as one of its root's."""

    oid: int
    root: int
    name: str


class LogicalMessages:
    """Take no notice of what logical messages say: who reads the log of DDL takes this one's place (`shapes/ddl_message.py`)."""

    def note(self, _prefix: str, _content: bytes) -> None:
        """Take a transactional message, in stream order."""

    def count(self, _oid: int) -> int:
        """Count the events that were logged of a table so far."""
        return 0

    def attnums(self, _relation: Relation) -> tuple[int, ...] | None:
        """Return the columns that a relation has by the event that was logged last, None where that does not say it."""
        return None


class ControlReader:
    """Read control messages in stream order and remember what they have named.

    `shapes` are all relation shapes so far, by version, and `splits` count for each how often its content had stood for other
    columns before; `after` are the places of its announcements: after so many logged events of its table. `origins` are all
    origins, by number.
    """

    def __init__(self, skip_origins: frozenset[str], logical: LogicalMessages) -> None:
        self.shapes: list[Relation] = []
        self.splits: list[int] = []
        self.after: list[set[int]] = []
        self._logical = logical
        self._numbers: list[tuple[int, ...] | None] = []
        self._known: dict[tuple[Relation, tuple[int, ...] | None], int] = {}
        self._times: dict[Relation, int] = {}
        self.origins: list[str] = []
        self._bases: dict[int, str] = {}
        self.catalogue = Catalogue._make(np.zeros(0, kind) for kind in (np.int64, np.int32, np.int32, np.int64))
        self._skip_origins = skip_origins
        self._newest: dict[int, int] = {}

    def known(self) -> dict[int, Relation]:
        """Return the relations as they stand at this place of the stream, by oid."""
        present = zip(self.catalogue.oids.tolist(), self.catalogue.current.tolist(), strict=True)
        return {oid: self.shapes[version] for oid, version in present if version != NONE}

    def places(self) -> dict[tuple[Relation, int], frozenset[int]]:
        """Return after how many logged events of its table each relation, by content and split, was announced."""
        found: dict[tuple[Relation, int], frozenset[int]] = {}
        for shape, split, after in zip(self.shapes, self.splits, self.after, strict=True):
            found[shape, split] = found.get((shape, split), frozenset()) | after
        return found

    def read(self, messages: Sequence[bytes]) -> Controls:
        """Read the control messages of a batch and bring `catalogue` up to date; raises ProtocolError."""
        shapes_before = len(self.shapes)
        oids = np.zeros(len(messages), np.int64)
        value = np.zeros(len(messages), np.int32)
        skip = np.zeros(len(messages), np.bool_)
        for number, data in enumerate(messages):
            message = _read_control(data)
            value[number] = self._learn(message)
            oids[number] = message.oid if isinstance(message, Relation) else 0
            skip[number] = isinstance(message, Origin) and message.name in self._skip_origins
        if len(self.shapes) > shapes_before:
            self._extend_catalogue()
        return Controls(value, np.searchsorted(self.catalogue.oids, oids).astype(np.int32), skip)

    def _learn(self, message: PlainMessage) -> int:
        """Note what a message says and return the number that `scan` needs of it."""
        match message:
            case Relation():
                return self._version(self._with_bases(message))
            case Origin(name=name):
                if name not in self.origins:
                    self.origins.append(name)
                return self.origins.index(name)
            case LogicalMessage(transactional=transactional, prefix=prefix, content=content):
                if transactional:
                    self._logical.note(prefix, content)
                return int(transactional)
            case Type(oid=oid, name=name):
                self._bases[oid] = name
        return 0

    def _with_bases(self, relation: Relation) -> Relation:
        """Say of what the columns are made; the server names the types right before each RELATION message that has them."""
        if self._bases.keys().isdisjoint(column.type_oid for column in relation.columns):
            return relation
        named = (replace(column, base=self._bases.get(column.type_oid, "")) for column in relation.columns)
        return replace(relation, columns=tuple(named))

    def _version(self, relation: Relation) -> int:
        numbers = self._logical.attnums(relation)
        version = self._newest.get(relation.oid, NONE)
        if version == NONE or (self.shapes[version], self._numbers[version]) != (relation, numbers):
            version = self._version_of(relation, numbers)
            self._newest[relation.oid] = version
        self.after[version].add(self._logical.count(relation.oid))
        return version

    def _version_of(self, relation: Relation, numbers: tuple[int, ...] | None) -> int:
        version = len(self.shapes)
        self.shapes.append(relation)
        self._numbers.append(numbers)
        self.after.append(set())
        if (relation, numbers) not in self._known:
            self._known[relation, numbers] = self._times.get(relation, 0)
            self._times[relation] = self._known[relation, numbers] + 1
        self.splits.append(self._known[relation, numbers])
        return version

    def _extend_catalogue(self) -> None:
        before = dict(zip(self.catalogue.oids.tolist(), self.catalogue.current.tolist(), strict=True))
        oids = sorted(self._newest)
        width = np.array([len(shape.columns) for shape in self.shapes], np.int32)
        first = np.cumsum(width, dtype=np.int64) - width
        current = np.array([before.get(oid, NONE) for oid in oids], np.int32)
        self.catalogue = Catalogue(np.array(oids, np.int64), current, width, first)


def _read_control(data: bytes) -> PlainMessage:
    """Read one control message; where it stands is the compiled pass's to judge."""
    cursor = Cursor(data)
    message = RULES[cursor.tag].read(cursor, {})
    cursor.end()
    return message
