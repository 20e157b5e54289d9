"""The catalog of a scratch database before and after a migration, each as the next capture would find and leave the source."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.config.connections import Connection
from penstock.flow.context import Context
from penstock.flow.schema.sync_publication import Alteration, decide
from penstock.shapes.leaves_to_inspect import leaves_to_inspect
from penstock.shapes.mirror_column import column_plan
from penstock.source import catalog_snapshot, leaf_rows, publication
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.session import SourceSession


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hold the catalog as found, what the patterns make of it, and why Penstock may not alter the publication, None where it did."""

    found: CatalogSnapshot
    alteration: Alteration | None
    blocker: str | None

    def steps(self, name: str) -> str:
        """Return what the publication's owner would run."""
        return self.alteration.difference.statements(name) if self.alteration and self.blocker else ""


def take_snapshot(ctx: Context, conn: SourceSession, hindrance: str | None = None) -> Snapshot:
    """Read the catalog, after the publication follows the patterns as it does at the source: not where a `hindrance` is there.

    Raises SourceError.
    """
    found = _read(ctx, conn)
    alteration = decide(ctx.pipeline, found, on_standby=False)
    if alteration is None:
        return Snapshot(found, None, None)
    blocker = alteration.blocker or hindrance
    name, difference = ctx.pipeline.publication, alteration.difference
    if blocker is None and difference.missing:
        publication.add(conn, name, difference.missing)
    if blocker is None and difference.extra:
        publication.alter(conn, publication.remove_statement(name, difference.extra))
    return Snapshot(_read(ctx, conn) if difference else found, alteration, blocker)


def left_to_owner(ctx: Context, before: Snapshot, after: Snapshot) -> list[str]:
    """Say what the publication's owner has to run after the migration and did not have to before."""
    name = ctx.pipeline.publication
    if not after.steps(name) or after.steps(name) == before.steps(name):
        return []
    return [f"Penstock may not alter publication {name} ({after.blocker}): its owner runs {after.steps(name)}"]


def blank(place: Connection, before: CatalogSnapshot, after: CatalogSnapshot) -> frozenset[int]:
    """Name the partitions that the migration made, and that had no row when they were attached; raises SourceError."""
    there = {relation.oid for relation in before.relations}
    found = set[int]()
    for table in before.tables:
        now = after.by_oid.get(table.oid)
        if now is None:
            continue
        possible = leaves_to_inspect(tuple(map(column_plan, table.columns)), table.shape, now)
        new = [*((each.leaf, each.since) for each in possible.arrived), *((leaf, ()) for leaf in possible.rewritten)]
        if new := [(leaf, since) for leaf, since in new if leaf.oid not in there]:
            with leaf_rows.looking(place, what="trial") as rows:
                found |= {leaf.oid for leaf, since in new if rows.inspect(leaf_rows.only_sent, leaf, since)}
    return frozenset(found)


def _read(ctx: Context, conn: SourceSession) -> CatalogSnapshot:
    return catalog_snapshot.read_catalog(conn, ctx.pipeline.publication, patterns=ctx.pipeline.tables)
