"""Number the shapes of relations by their content, so that the same shape always has the same number.

A landing file is named after its relation's number before the window is staged; the ledger takes the number
only if no other run gave it to another shape meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.ledger.relation_records import RelationRecord
from penstock.wire.messages import Relation


class RelationVersions:
    """Give every shape of a relation its number: the known one, or the next of its oid.

    The known ones are asked for when the first shape comes: most windows of a quiet source have none.
    """

    def __init__(self, known: Callable[[], Iterable[RelationRecord]] = list) -> None:
        self._known: Callable[[], Iterable[RelationRecord]] | None = known
        self._numbers: dict[Relation, list[int]] = {}
        self._last: dict[int, int] = {}

    def number(self, relation: Relation, split: int = 0) -> int:
        """Return the number of this content, counted from 1 per oid; another one where it has stood for other columns in the window."""
        self._load()
        numbers = self._numbers.setdefault(relation, [])
        while len(numbers) <= split:
            self._last[relation.oid] = self._last.get(relation.oid, 0) + 1
            numbers.append(self._last[relation.oid])
        return numbers[split]

    def _load(self) -> None:
        if self._known is None:
            return
        for record in self._known():
            self._numbers.setdefault(record.relation, []).append(record.version)
            self._last[record.relation.oid] = max(record.version, self._last.get(record.relation.oid, 0))
        self._known = None
