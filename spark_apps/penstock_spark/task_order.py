"""A table's part of a merge plan as the order of an engine's task: its columns by field id, its files, what may be among its changes."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.contract.manifest import ChangeCounts
from penstock.engine.order import Bounds, Column, LandedFile, MergeOrder, Resources, TargetFile
from penstock.engine.segments import Segment
from penstock.jobs.merge_plan import FileRef, MergePlan, TablePlan
from penstock.lake.columns import MISFITS, lake_column
from penstock.shapes.pg_snapshot import Snapshot
from penstock_spark import table_layout
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.lake_table import LakeTable


def task_order(
    plan: MergePlan,
    order: TablePlan,
    table: LakeTable,
    there: IcebergTable,
    *,
    files: Sequence[FileRef],
    target: Sequence[TargetFile],
    copy: bool,
    threads: int,
    segment: Segment,
    within: tuple[tuple[Bounds, ...], ...] = (),
) -> MergeOrder:
    """Return the order to bring a segment of these landed files into the Iceberg table `there`, whose data files are `target`.

    Changes of rows that are not `within` each of these lists of bounds are left out.
    """
    files = [files[at] for at in segment.files]
    landed = sum((file.counts for file in files), ChangeCounts())
    columns = tuple(
        Column(
            name=column.name,
            lake_type=lake_column(column).type,
            ids=there.ids(column.name),
            key=column.key if segment.key is None else column.name in segment.key,
            missing_text=column.missing_text,
            default=there.default(column.name),
        )
        for column in order.columns
    )
    seen = Snapshot.parse(order.copy_snapshot) if order.copy_snapshot and not copy else None
    return MergeOrder(
        columns=columns,
        misfits_ids=there.ids(MISFITS.name),
        landed=tuple(map(landed_file, files)),
        target=tuple(target),
        folder=table_layout.data_folder(there),
        copy=copy,
        grows_only=order.identity != "f" and not landed.old_full,
        moves=landed.old_key + landed.old_full > landed.deletes,
        unchanged=landed.unchanged > 0,
        truncates=landed.truncates > 0,
        skip=plan.skip_commit_lsns,
        seen_by=seen,
        before=order.before,
        since=segment.since,
        until=segment.until,
        within=within,
        stop_on_conflict=plan.on_conflict == "fail",
        stop_on_misfit=plan.on_misfit == "fail",
        partition=table_layout.partition(table, there, columns),
        sort=table_layout.sort(table, there, columns),
        storage=table_layout.storage(table, there),
        resources=Resources(threads, plan.task_memory),
    )


def landed_file(file: FileRef) -> LandedFile:
    """Return a landing file as the engine names it."""
    typed = frozenset(dict(file.typed))
    reals = frozenset(file.reals)
    return LandedFile(file.uri, file.rows, file.columns, typed, fields=file.fields, partial=file.partial, reals=reals)
