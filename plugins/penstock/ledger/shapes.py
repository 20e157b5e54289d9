"""What the ledger keeps of shapes: of relations, as the stream described them, and of tables, from the catalog and from the log of DDL.

The shapes of relations are numbered by their content, so that the same shape always has the same number. A landing file is named after
its relation's number before the window is staged; the ledger takes the number only if no other run gave it to another shape meanwhile.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

from penstock.codec import plain
from penstock.errors import LedgerError
from penstock.ledger.session import Part, Transaction, recordset
from penstock.lsn import Lsn
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.timeline import History, KnownRelation, RelationMapping
from penstock.wire.messages import Relation

Evidence = Literal["catalog", "trigger"]


class RelationVersions:
    """Give every shape of a relation its number: the known one, or the next of its oid.

    The known ones are asked for when the first shape comes: most windows of a quiet source have none.
    """

    def __init__(self, known: Callable[[], Iterable[KnownRelation]] = list) -> None:
        self._known: Callable[[], Iterable[KnownRelation]] | None = known
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
        for known in self._known():
            if known.version > self._last.get(known.relation.oid, 0):  # else it is there with other columns
                self._numbers.setdefault(known.relation, []).append(known.version)
                self._last[known.relation.oid] = known.version
        self._known = None


class Shapes(Part):
    """Record shapes."""

    def relations(self, name: str) -> list[KnownRelation]:
        """Return every relation shape that was staged, by oid, version and position."""
        return self.records(KnownRelation, "shapes/relations", name=name)

    def relation_versions(self, name: str) -> RelationVersions:
        """Return the numbering of relation shapes, to number those of the next window."""
        return RelationVersions(partial(self.relations, name))

    def note(
        self,
        name: str,
        found: Mapping[int, KnownShape],
        *,
        seen_at: Lsn,
        generation: str | None = None,
        unchanged: Iterable[int] = (),
    ) -> None:
        """Note what the catalog has of tables, which was so by a position, where that is new.

        `generation` is that of the source's event trigger, which is noted of `unchanged` tables, too.
        """
        same = () if generation is None else unchanged
        with self.transaction() as transaction:
            note_shapes(transaction, name, {**dict.fromkeys(same), **found}, seen_at, generation)

    def histories(self, name: str, oids: Collection[int], *, since: Lsn) -> dict[int, History]:
        """Return what is known of these tables from a position on: of the catalog, the oldest first, and what was logged last."""
        rows = self.rows("shapes/shapes", name=name, oids=oids, since=since)
        found: dict[int, list[KnownShape]] = {}
        logged: dict[int, KnownShape] = {}
        for oid, evidence, generation, sure, shape in rows:
            known = KnownShape.from_json({**shape, "generation": generation, "sure": sure, "oid": oid})
            if evidence == "trigger":
                logged[oid] = known
            else:
                found.setdefault(oid, []).append(known)
        return {oid: History(known, logged.get(oid)) for oid, known in found.items()}


def add_relations(
    transaction: Transaction,
    name: str,
    found: Mapping[tuple[int, int], Relation],
    mappings: Mapping[tuple[int, int], RelationMapping],
    from_lsn: Lsn,
) -> None:
    """Note the relations of a window by oid and version, with what their columns are; raises LedgerError("ledger-conflict")."""
    rows = [
        {
            "oid": oid,
            "version": version,
            "sent": plain(relation),
            "mapped": (oid, version) in mappings,
            **plain(mappings.get((oid, version), RelationMapping(None))),
        }
        for (oid, version), relation in found.items()
    ]
    for oid, version in transaction.rows(
        "shapes/add_relations", name=name, from_lsn=from_lsn, relations=recordset(rows)
    ):
        raise LedgerError(
            "ledger-conflict",
            f"expected shape {version} of relation {oid} to be new or the same as before, it is another one; "
            "number the window's relations from relation_versions() and capture it again",
        )


def note_shapes(
    transaction: Transaction,
    name: str,
    found: Mapping[int, KnownShape | None],
    seen_at: Lsn | None,
    generation: str | None = None,
) -> None:
    """Note what the catalog has of tables where that is new, None for the same as before, inside a transaction."""
    rows = [
        {"oid": oid, "generation": generation, "shape": None if known is None else known.to_json()}
        for oid, known in found.items()
    ]
    _note(transaction, name, rows, seen_at, "catalog")


def keep_logged(transaction: Transaction, name: str, logged: Mapping[int, KnownShape], seen_at: Lsn) -> None:
    """Keep the last shapes that the event trigger has logged of tables through a position."""
    if gone := [oid for oid, shape in logged.items() if shape.gone]:
        transaction.change("shapes/distrust_shapes", name=name, oids=gone)
    there = {oid: shape for oid, shape in logged.items() if not shape.gone}
    rows = [{"oid": oid, "generation": each.generation, "shape": each.to_json()} for oid, each in there.items()]
    _note(transaction, name, rows, seen_at, "trigger")


def distrust_shapes(transaction: Transaction, name: str) -> None:
    """Note that the event trigger may have missed something: whatever it has logged proves nothing any more."""
    transaction.change("shapes/distrust_shapes", name=name, oids=None)


def keep_open(transaction: Transaction, name: str, tables: Sequence[Mapping[str, object]]) -> None:
    """Keep what is open of tables, or of what is being built of them under an `id`, as `TableFacts` has it."""
    transaction.change("shapes/keep_open", name=name, tables=recordset(tables))


def _note(
    transaction: Transaction, name: str, rows: Sequence[Mapping[str, object]], seen_at: Lsn | None, evidence: Evidence
) -> None:
    if rows:
        transaction.change("shapes/note_shapes", name=name, shapes=recordset(rows), seen_at=seen_at, evidence=evidence)
