"""One look at the source's catalog: a publication, its tables, and those that patterns choose, all as of one moment.

What is decided from the catalog is decided from such a look, handed to functions that ask the source nothing. Two
decisions about one window then never see two states of the catalog. For a look that finds nothing new the server makes one digest
per published table of all that the catalog says of it, from the rows that `catalog.describe` puts a table together from: as long as
it is the same, so is the table. A thousand tables then cost a thousand short rows instead of a description of each.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.config.model import Patterns
from penstock.shapes.source_table import SHAPE_LAYOUT, SourceTable
from penstock.source import catalog, publication, refusals, types
from penstock.source.catalog import Published, Relation
from penstock.source.patterns import Choice, choose
from penstock.source.publication import PublicationFacts
from penstock.source.refusals import Refusal
from penstock.source.session import SourceSession, composed
from penstock.source.types import Types


@dataclass(frozen=True, slots=True)
class Privileges:
    """Hold what our role may do with one relation; `narrowed`: row-level security would hide rows from it."""

    oid: int
    schema: str
    name: str
    usage: bool
    select: bool
    narrowed: bool
    owned: bool


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Hold what the catalog says of one publication, which is None where there is none of its name.

    `relations` is whatever a pattern may name; `tables` are those that are published, and `listed` the oids of those that
    are listed by themselves. With patterns, `choice` is what they choose, `candidates` are the chosen tables that are not
    published, `owned` the oids of the candidates that the session's role owns, and `refused` says by oid which of them would
    refuse the application's updates or deletes if they were published.
    Where the look began with `stamps` of before, `tables` lacks those published tables that are `unchanged` since, and the
    `stamps` of all are those of now.
    """

    publication: PublicationFacts | None
    relations: tuple[Relation, ...]
    tables: tuple[SourceTable, ...]
    listed: frozenset[int]
    choice: Choice | None = None
    candidates: tuple[SourceTable, ...] = ()
    owned: frozenset[int] = frozenset()
    refused: Mapping[int, Sequence[Refusal]] = field(default_factory=dict)
    unchanged: frozenset[int] = frozenset()
    stamps: Mapping[int, str] = field(default_factory=dict)

    @property
    def by_oid(self) -> dict[int, SourceTable]:
        """Return the published tables by oid."""
        return {table.oid: table for table in self.tables}

    @property
    def sent(self) -> tuple[str, ...]:
        """Name the kinds of change that the publication sends, none for one that does not exist."""
        return tuple(self.publication.sent) if self.publication else ()

    @property
    def chosen(self) -> tuple[SourceTable, ...]:
        """Return the tables that the patterns choose, published or not, ordered by name."""
        oids = {relation.oid for relation in self.choice.chosen} if self.choice else set()
        found = [table for table in (*self.tables, *self.candidates) if table.oid in oids]
        return tuple(sorted(found, key=lambda table: (table.schema, table.name)))


def read_catalog(
    conn: SourceSession,
    name: str,
    *,
    patterns: Patterns | None = None,
    sizes: bool = False,
    known: Mapping[int, str] | None = None,
) -> CatalogSnapshot:
    """Look at a publication, and at what patterns choose; without `sizes` no table is locked, not even for a moment.

    Tables that have the stamps which are `known` of them are not described again.
    Raises SourceError.
    """
    with catalog.one_snapshot(conn):
        facts = publication.read_publication(conn, name)
        relations = catalog.relations(conn)
        stamps, unchanged = dict[int, str](), frozenset[int]()
        if known is None:
            members = catalog.members(conn, name)
            listed = frozenset(oid for oid, published in members.items() if published.listed)
        else:
            stamps, listed = _read_stamps(conn, name)
            unchanged = frozenset(oid for oid, stamp in stamps.items() if known.get(oid) == stamp)
            other = stamps.keys() - unchanged
            members = catalog.members(conn, name, other) if other else {}
        choice = choose(relations, patterns) if patterns else None
        chosen = {relation.oid for relation in choice.chosen} if choice else set()
        missing = chosen - members.keys() - unchanged
        found = catalog.describe(conn, {**dict.fromkeys(missing, Published()), **members}, sizes=sizes)
        rights = conn.records(Privileges, "preflight/privileges", oids=sorted(missing)) if missing else []
        refused = refusals.by_table(refusals.read_refusals(conn, name, joining=sorted(missing))) if missing else {}
    return CatalogSnapshot(
        publication=facts,
        relations=tuple(relations),
        tables=tuple(table for table in found if table.oid in members),
        listed=listed,
        choice=choice,
        candidates=tuple(table for table in found if table.oid in missing),
        owned=frozenset(each.oid for each in rights if each.owned),
        refused={oid: each for oid, each in refused.items() if oid in missing},
        unchanged=unchanged,
        stamps=stamps,
    )


def _read_stamps(conn: SourceSession, publication: str) -> tuple[dict[int, str], frozenset[int]]:
    """Return the digest of each published table by oid, and the oids of those that the publication names by themselves."""
    members = conn.ask(
        composed("catalog/member_stamps", published=composed("catalog/published")), publication=publication
    )
    parts = {"heaps": composed("catalog/heaps"), "columns": composed("catalog/columns")}
    rows_of_tables = conn.ask(
        composed("catalog/table_stamps", **parts), oids=[oid for oid, _, _ in members], sizes=False
    )
    found = {row[0]: row[1:] for row in rows_of_tables}
    known = types.read_types(conn, {oid for _, _, used in found.values() for oid in used})
    missing = catalog.missing_values(conn, [leaf for _, leaves, _ in found.values() for leaf in leaves or ()])
    made_of: dict[tuple[int, ...], str] = {}
    stamps = {
        oid: _digest(
            version,
            rows,
            _types(known, tuple(used), made_of),
            *(sorted(missing[leaf].items()) for leaf in leaves or ()),
        )
        for oid, version, _ in members
        if oid in found
        for rows, leaves, used in [found[oid]]
    }
    return stamps, frozenset(oid for oid, _, listed in members if listed)


def _types(known: Types, used: tuple[int, ...], made_of: dict[tuple[int, ...], str]) -> str:
    if used not in made_of:
        made_of[used] = _digest(known.closure(used))
    return made_of[used]


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr((SHAPE_LAYOUT, parts)).encode(), digest_size=16).hexdigest()
