"""What landed files are to the tables that they are of, and what Spark is ordered to do with one table: in place, or on a fresh one
that is built beside it and takes its name at last.

Files of a table that is built are chosen as the merge chooses them for a copied table: all that may hold a change which the copy's
snapshot did not see, and the snapshot itself separates them by transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.contract.manifest import FileEntry, FileRef
from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.jobs.plans import Replaced, TablePlan
from penstock.jobs.pointers import place_of
from penstock.lake.ddl import CUTS_TABLE
from penstock.ledger import iceberg_pointers
from penstock.ledger.merge_queue import MergeQueue
from penstock.ledger.records import WindowRecord
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import TableFacts
from penstock.shapes.mapping import Fit, fetched_fit, fit, overwritten
from penstock.shapes.mirror_column import MirrorColumn, present
from penstock.shapes.partition_bounds import data
from penstock.shapes.pg_snapshot import Snapshot
from penstock.shapes.timeline import KnownRelation, RelationMapping, first_columns

Fits = Mapping[str, Fit]
"""What landed files are to their tables, by path."""


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
        mapping = known[-1] if known else RelationMapping(first_columns(relation, present(table.columns)))
        return fit(table, relation, mapping, later)


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


def table_plan(table: TableRecord, queue: MergeQueue, fits: Fits, landed: LandedFiles, *, evolve: bool) -> TablePlan:
    """Order one table that the lake has: its columns, and the files that are due; raises LakeError."""
    return TablePlan(
        oid=table.oid,
        schema=table.schema,
        table=table.name,
        target=table.target,
        identity=table.identity,
        columns=table.columns,
        files=landed.fitted((file, fits[file.path]) for file in queue.files(table)),
        expected_snapshot=table.snapshot_id,
        evolve=evolve,
        # at the very place of the stream after which the bounds of dropped partitions may have new rows
        removed=_by_name(table, (data(each.bound) for each in table.accepted.leaving if each.lsn == queue.upto)),
        replaced=tuple(
            Replaced(
                each.lsn,
                _by_name(table, each.stays or ()),
                landed.of_columns(each.files, each.attnums, table.columns),
            )
            for each in queue.replacing(table)
        ),
    )


def _by_name(table: TableRecord, bounds: Iterable[Sequence[Sequence[Any]]]) -> tuple[tuple[tuple[Any, ...], ...], ...]:
    """Return bounds of partitions by the lake's names of columns."""
    names = {column.attnum: column.name for column in table.columns}
    return tuple(tuple((names[attnum], *rest) for attnum, *rest in bound) for bound in bounds)


def build_plan(
    ctx: Context,
    load: LoadRecord,
    windows: Sequence[WindowRecord],
    known: Landed,
    *,
    copied: bool = False,
    through: Lsn | None = None,
) -> TablePlan:
    """Order some windows of one table that is built, after its copy where that is to be loaded.

    Raises LakeError: "schema-change" when a landed row does not belong into the table, "landing-file-missing".
    """
    goal = load.goal_lsn
    files = list(fitting(ctx, load, Snapshot.parse(load.snapshot), windows, known, goal=goal))
    refs = LandedFiles(ctx)
    cut_inside = goal is not None and any((entry.max_commit_lsn or 0) >= goal for entry, _ in files)
    overlap = any(window.from_lsn < load.lsn for window in windows)
    return TablePlan(
        oid=load.oid,
        schema=load.schema,
        table=load.name,
        target=load.target,
        identity=load.identity,
        columns=load.columns,
        files=refs.fitted(files),
        copy_files=refs.of_columns(load.files, load.attnums, load.columns) if copied else None,
        copy_snapshot=load.snapshot if overlap else None,
        expected_snapshot=load.snapshot_id,
        fresh=load.place,
        rebuild=load.id,
        through=through,
        before=goal if cut_inside else None,
    )


def with_pointers(
    ctx: Context, queue: MergeQueue, orders: Sequence[TablePlan]
) -> tuple[tuple[TablePlan, ...], str | None]:
    """Add what the catalog shows of each table now, by one statement, and which are to be looked at for that.

    Also return what it shows of the table of cuts. A table that is not as our last cut left it was compacted, or was met by a run that was killed; or it was changed,
    rolled back or dropped by another's hand. Raises LakeError("catalog-unreachable").
    """
    cuts = ctx.pipeline.namespace, CUTS_TABLE
    places = [*(place_of(order.target) for order in orders), cuts]
    shown = iceberg_pointers.shown(ctx.catalog, ctx.pipeline.lake.catalog, places)
    ours = {table.oid: table.shows for table in queue.tables}
    known = (_with_pointer(order, shown.get(place_of(order.target)), ours) for order in orders)
    return tuple(known), shown.get(cuts)


def _with_pointer(order: TablePlan, now: str | None, ours: Mapping[int, str | None]) -> TablePlan:
    known = replace(order, shown=now, inspect=order.oid in ours and (now is None or now != ours[order.oid]))
    return replace(known, columns=()) if known.idle else known


class LandedFiles:
    """Name landing files for a plan, having looked whether they are there: one look per folder, not per file."""

    def __init__(self, ctx: Context) -> None:
        self._zone = ctx.landing
        self._folders: dict[str, frozenset[str]] = {}

    def of_columns(
        self, files: Iterable[FileEntry], attnums: Iterable[int], columns: Iterable[MirrorColumn]
    ) -> tuple[FileRef, ...]:
        """Name files of whole rows of columns with these numbers, with the lake's names of these; raises LakeError as `fitted`."""
        known = {column.attnum: column for column in columns}
        found = [known.get(attnum) for attnum in attnums]
        fields = [None if column is None else column.name for column in found]
        texts, files = {column.name for column in found if column is not None and column.as_text}, list(files)
        if texts and any(name in texts for entry in files for name in _typed(entry, fields)):
            raise LakeError(
                "schema-change",
                f"expected the copy to have the source's texts of {', '.join(sorted(texts))}, for which tables.columns has chosen text "
                "since; copy the table again",
            )
        return tuple(self._ref(entry, fields) for entry in files)

    def fitted(self, entries: Iterable[tuple[FileEntry, Fit]]) -> tuple[FileRef, ...]:
        """Name files of changes, with the lake's names of their columns; raises LakeError("landing-file-missing")."""
        return tuple(replace(self._ref(entry, fit.fields), key=fit.key, reals=fit.reals) for entry, fit in entries)

    def _ref(self, entry: FileEntry, fields: Sequence[str | None] | None = None) -> FileRef:
        folder = entry.path.rpartition("/")[0]
        if folder not in self._folders:
            self._folders[folder] = frozenset(self._zone.list(folder))
        if entry.path not in self._folders[folder]:
            raise LakeError(
                "landing-file-missing",
                f"expected the landing file {entry.path} that a manifest lists, found none; restore it, or copy the table again",
            )
        named = None if fields is None or tuple(fields) == entry.columns else tuple(fields)
        return replace(entry.at(self._zone.uri(entry.path)), fields=named)


def _typed(entry: FileEntry, fields: Sequence[str | None]) -> Iterator[str | None]:
    """Yield the lake's names of the columns that a file has as values."""
    names = dict(zip(entry.columns, fields, strict=True))
    yield from (names[name] for name, _ in entry.typed)
