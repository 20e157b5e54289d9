"""What landed files are to the tables that they are of, and which of them a table that is built from a copy needs.

Files are chosen as the merge chooses them for a copied table: all that may hold a change which the copy's snapshot did
not see, and the snapshot itself separates them by transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.contract.manifest import FileEntry
from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.ledger.records import WindowRecord
from penstock.ledger.table_records import LoadRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import TableFacts
from penstock.shapes.mapping import Fit, by_name, fetched_fit, fit, overwritten
from penstock.shapes.pg_snapshot import Snapshot
from penstock.shapes.timeline import KnownRelation, RelationMapping


@dataclass(frozen=True, slots=True)
class Landed:
    """Hold every landed relation by oid and version, in the order of the windows in which its columns were others, and what was fetched since."""

    relations: Mapping[tuple[int, int], Sequence[KnownRelation]]
    fetches: Sequence[LoadRecord] = ()

    def fit(self, table: TableFacts, entry: FileEntry, window: Lsn) -> Fit:
        """Say what the rows of a file, in the window from a position on, are to a table."""
        later = overwritten(self.fetches, entry.oid, entry.max_commit_lsn)
        if entry.attnums is not None:
            return fetched_fit(table, entry, self.fetches, later)
        versions = self.relations[entry.oid, entry.version]
        relation = versions[0].relation
        known = [each.mapping for each in versions if each.mapping is not None and each.from_lsn <= window]
        return fit(table, relation, known[-1] if known else RelationMapping(by_name(table, relation)), later)


def landed_relations(ctx: Context) -> Landed:
    """Return every landed relation."""
    relations: dict[tuple[int, int], list[KnownRelation]] = {}
    for known in ctx.ledger.shapes.relations(ctx.name):
        relations.setdefault((known.relation.oid, known.version), []).append(known)
    return Landed(relations, ctx.ledger.loads.fetches(ctx.name))


def windows_due(windows: Sequence[WindowRecord], after: Lsn | None, before: Lsn | None = None) -> list[WindowRecord]:
    """Return the windows that may hold changes after one position and before another, in order."""
    return [
        window
        for window in windows
        if (after is None or window.upto_lsn > after) and (before is None or window.from_lsn < before)
    ]


def chunk(windows: Sequence[WindowRecord], oid: int, *, most_bytes: int) -> Sequence[WindowRecord]:
    """Return the first windows whose files of a table fit into `most_bytes` bytes; at least the first that has any."""
    used = 0
    for count, window in enumerate(windows):
        size = sum(entry.bytes for entry in window.files if entry.oid == oid)
        if used and size and used + size > most_bytes:
            return windows[:count]
        used += size
    return windows


def fitting(
    ctx: Context,
    facts: TableFacts,
    snapshot: Snapshot,
    windows: Sequence[WindowRecord],
    known: Landed,
    *,
    goal: Lsn | None = None,
) -> Iterator[tuple[FileEntry, Fit]]:
    """Yield a table's files with changes that its copy's snapshot may not have seen, up to a goal; raises LakeError("schema-change").

    A table that is copied again after its columns changed has files of the older shape: they are left out where the copy
    saw everything in them, as a file is whose changes all come after the goal.
    """
    for window in windows:
        for entry in window.files:
            if entry.oid != facts.oid or not _between(entry, snapshot, goal):
                continue
            found = known.fit(facts, entry, window.from_lsn)
            if found.reason is None:
                yield entry, found
            elif not _all_seen(ctx, entry, snapshot):
                raise LakeError(
                    "schema-change",
                    f"expected the changes landed in {window.from_lsn}-{window.upto_lsn} to have the columns of "
                    f"{facts.schema}.{facts.name}, but {found.reason}; copy the table again: resync it",
                )


def _between(entry: FileEntry, snapshot: Snapshot, goal: Lsn | None) -> bool:
    seen = entry.max_xid is not None and entry.max_xid < snapshot.xmin
    late = goal is not None and entry.min_commit_lsn is not None and entry.min_commit_lsn >= goal
    return not seen and not late


def _all_seen(ctx: Context, entry: FileEntry, snapshot: Snapshot) -> bool:
    xids = ctx.landing.read(entry.path, ["xid"]).column("xid").unique()
    return all(snapshot.sees(xid) for xid in xids.to_pylist())
