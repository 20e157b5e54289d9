"""What Spark is ordered to do for a rebuild: the next chunk onto the fresh table, or its last windows and the switch.

Files are chosen as the merge chooses them for a copied table: all that may hold a change which the copy's snapshot did
not see, and the snapshot itself separates them by transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.contract.manifest import FileEntry
from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.flow.merge.table_plan import LandedFiles
from penstock.jobs.merge_plan import TablePlan
from penstock.ledger.records import WindowRecord
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.mapping import Fit, by_name, fetched_fit, fit, overwritten
from penstock.shapes.pg_snapshot import Snapshot
from penstock.shapes.table_facts import TableFacts
from penstock.shapes.timeline import KnownRelation, RelationMapping


@dataclass(frozen=True, slots=True)
class Landed:
    """Hold every landed relation by oid and version, in the order of the windows in which its columns were others, and what was fetched since."""

    relations: Mapping[tuple[int, int], Sequence[KnownRelation]]
    fetches: Sequence[LoadRecord] = ()

    def fit(self, table: TableRecord | TableFacts, entry: FileEntry, window: Lsn) -> Fit:
        """Say what the rows of a file, in the window from a position on, are to a table."""
        later = overwritten(self.fetches, entry.oid, entry.max_commit_lsn)
        if entry.attnums is not None:
            return fetched_fit(table, entry, self.fetches, later)
        versions = self.relations[entry.oid, entry.version]
        relation = versions[0].relation
        known = [each.mapping for each in versions if each.mapping is not None and each.from_lsn <= window]
        return fit(table, relation, known[-1] if known else RelationMapping(by_name(table, relation)), later)


@dataclass(frozen=True, slots=True)
class Copied:
    """Hold what a table looked like when it was copied, and the text of the snapshot that the copy was made under."""

    facts: TableFacts
    snapshot: str


def waiting_for_names(wanted: Mapping[int, tuple[str, ...]], targets: Mapping[int, tuple[str, ...]]) -> dict[int, int]:
    """Return the tables that cannot take their names in this cut, each with the table that has its name. Pure.

    `wanted` are the names that renamed and rebuilt tables are to have, `targets` those of the lake's tables, by oid. Tables
    that were renamed in a circle go together or not at all.
    """
    holders = {target: oid for oid, target in targets.items()}
    going, waiting = dict(wanted), dict[int, int]()
    while True:
        stuck = {oid: holders.get(target, oid) for oid, target in going.items()}
        stuck = {oid: holder for oid, holder in stuck.items() if holder != oid and holder not in going}
        if not stuck:
            return waiting
        for oid, holder in stuck.items():
            waiting[oid] = holder
            del going[oid]


def landed_relations(ctx: Context) -> Landed:
    """Return every landed relation."""
    relations: dict[tuple[int, int], list[KnownRelation]] = {}
    for known in ctx.ledger.shapes.relations(ctx.name):
        relations.setdefault((known.relation.oid, known.version), []).append(known)
    return Landed(relations, ctx.ledger.loads.fetches(ctx.name))


def due(windows: Sequence[WindowRecord], after: Lsn | None, before: Lsn | None = None) -> list[WindowRecord]:
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


def rebuild_plan(
    ctx: Context,
    rebuild: LoadRecord,
    windows: Sequence[WindowRecord],
    known: Landed,
    *,
    copied: bool = False,
    through: Lsn | None = None,
) -> TablePlan:
    """Order the windows of one rebuild, after its copy where that is to be loaded.

    Raises LakeError: "schema-change" when a landed row does not belong into the table, "landing-file-missing".
    """
    goal = rebuild.goal_lsn
    copy_of = Copied(rebuild.facts, rebuild.snapshot)
    files, refs = list(fitting(ctx, copy_of, windows, known, goal=goal)), LandedFiles(ctx)
    cut_inside = goal is not None and any((entry.max_commit_lsn or 0) >= goal for entry, _ in files)
    overlap = any(window.from_lsn < rebuild.lsn for window in windows)
    return TablePlan(
        oid=rebuild.oid,
        schema=rebuild.schema,
        table=rebuild.name,
        target=rebuild.target,
        identity=rebuild.identity,
        columns=rebuild.columns,
        files=refs.fitted(files),
        copy_files=refs.copied(rebuild, rebuild.columns) if copied else None,
        copy_snapshot=rebuild.snapshot if overlap else None,
        expected_snapshot=rebuild.snapshot_id,
        fresh=rebuild.place,
        rebuild=rebuild.id,
        through=through,
        before=goal if cut_inside else None,
    )


def fitting(
    ctx: Context, copied: Copied, windows: Sequence[WindowRecord], known: Landed, *, goal: Lsn | None = None
) -> Iterator[tuple[FileEntry, Fit]]:
    """Yield a table's files with changes that its copy may not have seen, up to a goal; raises LakeError("schema-change").

    A table that is copied again after its columns changed has files of the older shape: they are left out where the copy
    saw everything in them, as a file is whose changes all come after the goal.
    """
    snapshot, facts = Snapshot.parse(copied.snapshot), copied.facts
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
    xids = ctx.landing.columns(entry.path, ["xid"]).column("xid").unique()
    return all(snapshot.sees(xid) for xid in xids.to_pylist())
