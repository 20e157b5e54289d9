"""What Spark is ordered to do with one table: in place, or on a fresh one that is built beside it and takes its name at last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.contract.manifest import FileEntry, FileRef
from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.flow.merge.landed import Landed, fitting
from penstock.jobs.plans import Replaced, TablePlan
from penstock.jobs.pointers import place_of
from penstock.lake.ddl import CUTS_TABLE
from penstock.ledger import iceberg_pointers
from penstock.ledger.merge_queue import MergeQueue
from penstock.ledger.records import WindowRecord
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.mapping import Fit
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.partition_bounds import data
from penstock.shapes.pg_snapshot import Snapshot

Fits = Mapping[str, Fit]
"""What landed files are to their tables, by path."""


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
