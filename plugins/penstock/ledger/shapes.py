"""What the ledger keeps of shapes: of relations, as the stream described them, and of tables, from the catalog and from the log of DDL.

The shapes of relations are numbered by their content, so that the same shape always has the same number. A landing file is named after
its relation's number before the window is staged; the ledger takes the number only if no other run gave it to another shape meanwhile.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial

from penstock.codec import plain
from penstock.errors import LedgerError
from penstock.ledger.session import Part, Transaction, recordset
from penstock.lsn import Lsn
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.timeline import History, KnownRelation, RelationMapping
from penstock.wire.messages import Relation


class RelationVersions:
    """Give every shape of a relation its number: the known one, or the next of its oid.

    The known ones are asked for when the first shape comes: most windows of a quiet source have none.
    """

    def __init__(self, known: Callable[[], Iterable[KnownRelation]] = list) -> None:
        self._known = known

    def number(self, relation: Relation, split: int = 0) -> int:
        """Return the number of this content, counted from 1 per oid; another one where it has stood for other columns in the window."""
        given, last = self._given
        numbers = given.setdefault(relation, [])
        while len(numbers) <= split:
            last[relation.oid] = last.get(relation.oid, 0) + 1
            numbers.append(last[relation.oid])
        return numbers[split]

    @cached_property
    def _given(self) -> tuple[dict[Relation, list[int]], dict[int, int]]:
        """Return the numbers of every content, and the last one of every oid."""
        given: dict[Relation, list[int]] = {}
        last: dict[int, int] = {}
        for known in self._known():
            if known.version > last.get(known.relation.oid, 0):  # else it is there with other columns
                given.setdefault(known.relation, []).append(known.version)
                last[known.relation.oid] = known.version
        return given, last


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
    if rows:
        transaction.change("shapes/note_shapes", name=name, shapes=recordset(rows), seen_at=seen_at, evidence="catalog")


def keep_logged(
    transaction: Transaction, name: str, logged: Mapping[int, KnownShape], seen_at: Lsn, *, missed: bool
) -> None:
    """Keep the last shapes that the event trigger has logged of tables through a position.

    Where it may have `missed` something, whatever it has logged before proves nothing any more.
    """
    gone = [oid for oid, shape in logged.items() if shape.gone]
    if missed or gone:
        transaction.change("shapes/distrust_shapes", name=name, oids=None if missed else gone)
    there = {oid: shape for oid, shape in logged.items() if not shape.gone}
    rows = [{"oid": oid, "generation": each.generation, "shape": each.to_json()} for oid, each in there.items()]
    if rows:
        transaction.change("shapes/note_shapes", name=name, shapes=recordset(rows), seen_at=seen_at, evidence="trigger")


def keep_open(transaction: Transaction, name: str, tables: Sequence[Mapping[str, object]]) -> None:
    """Keep what is open of tables, or of what is being built of them under an `id`, as `TableFacts` has it."""
    transaction.change("shapes/keep_open", name=name, tables=recordset(tables))
