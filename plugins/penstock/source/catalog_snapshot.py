"""One look at the source's catalog: a publication, its tables, and those that patterns choose, all as of one moment.

What is decided from the catalog is decided from such a look, handed to functions that ask the source nothing. Two
decisions about one window then never see two states of the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.config.model import Patterns
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog, catalog_stamps, publication, refusals
from penstock.source.catalog import Published, Relation
from penstock.source.catalog_stamps import Stamps
from penstock.source.patterns import Choice, choose
from penstock.source.preflight.report import Privileges
from penstock.source.publication import PublicationFacts
from penstock.source.refusals import Refusal
from penstock.source.session import SourceSession


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
        return self.publication.sent if self.publication else ()

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
    Raises SourceError, ConfigError for an unreadable pattern.
    """
    with catalog.one_snapshot(conn):
        facts = publication.read_publication(conn, name)
        relations = catalog.relations(conn)
        stamps = Stamps() if known is None else catalog_stamps.read_stamps(conn, name)
        unchanged = stamps.same(known or {})
        if known is None:
            members = catalog.members(conn, name)
            listed = frozenset(oid for oid, published in members.items() if published.listed)
        else:
            members, listed = catalog.members_of(conn, name, stamps.by_oid.keys() - unchanged), stamps.listed
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
        stamps=stamps.by_oid,
    )
