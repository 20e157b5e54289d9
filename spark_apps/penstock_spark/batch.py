"""The engine's part of a table's merge: its orders from the plan, and where they are carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.engine import split, task
from penstock.engine.files import Files
from penstock.engine.order import Bounds, MergeAnswer, MergeOrder, Resources, TargetFile
from penstock.engine.segments import Segment
from penstock.jobs.merge_plan import FileRef, MergePlan, TablePlan
from penstock.lake.evolution import Evolution
from penstock_spark import executors, stores
from penstock_spark.executors import Executors, stays_in_driver
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.lake_table import LakeTable
from penstock_spark.task_order import landed_file, task_order


@dataclass(frozen=True)
class Batch:
    """Hold what one table's tasks have in common; `threads` are those of a task in the driver."""

    session: SparkSession
    plan: MergePlan
    order: TablePlan
    table: LakeTable
    environment: Mapping[str, str]
    threads: int

    def segments(self, there: IcebergTable, files: Sequence[FileRef]) -> tuple[Segment, ...]:
        """Return the parts of these landed changes that are each matched by one key, in their order."""
        resources = Resources(self.threads, self.plan.task_memory)
        return task.cut(
            [landed_file(file) for file in files], [file.key for file in files], resources, self.reached(there)
        )

    def key_bounds(
        self, there: IcebergTable, files: Sequence[FileRef], wanted: Evolution
    ) -> dict[str, tuple[int, int]]:
        """Return between which values the keys of the batch lie; nothing where it has several keys, or rows get one of them only now."""
        keys = {column.name for column in self.order.columns if column.key}
        if not keys or keys & {column.name for column in wanted.added} or any(file.key is not None for file in files):
            return {}
        order = self._order(there, files, (), all_of(files), threads=self.threads)
        return task.key_bounds(order, self.reached(there))

    def reached(self, there: IcebergTable) -> Files:
        """Return the stores of landed files and of the table's."""
        return stores.task_files(self.session, self.plan, self.environment, there.folder)

    def merge(
        self,
        there: IcebergTable,
        files: Sequence[FileRef],
        target: Sequence[TargetFile],
        segment: Segment,
        *,
        copy: bool = False,
        within: tuple[tuple[Bounds, ...], ...] = (),
    ) -> MergeAnswer:
        """Let the engine write what a segment of these landed files makes of the table: here, or where the cluster has room."""
        context = self.session.sparkContext
        size = sum(files[at].bytes for at in segment.files)
        stays = stays_in_driver(context.master, size, sum(file.rows for file in target))
        threads = self.threads if stays else executors.task_cpus(context)
        wanted = self._order(there, files, target, segment, copy=copy, threads=threads, within=within)
        reached = self.reached(there)
        if stays:
            return task.merge(wanted, reached)
        return split.merge(wanted, split.shape_of(wanted, executors.slots(context)), reached, Executors(context))

    def remove(
        self, there: IcebergTable, target: Sequence[TargetFile], bounds: Sequence[Bounds], *, others: bool = False
    ) -> MergeAnswer:
        """Let the engine find the rows within these bounds, or all `others`."""
        order = self._order(there, (), target, all_of(()), threads=self.threads)
        return task.remove(order, bounds, self.reached(there), others=others)

    def _order(
        self,
        there: IcebergTable,
        files: Sequence[FileRef],
        target: Sequence[TargetFile],
        segment: Segment,
        *,
        threads: int,
        copy: bool = False,
        within: tuple[tuple[Bounds, ...], ...] = (),
    ) -> MergeOrder:
        return task_order(
            self.plan,
            self.order,
            self.table,
            there,
            files=files,
            target=target,
            copy=copy,
            threads=threads,
            segment=segment,
            within=within,
        )


def all_of(files: Sequence[FileRef]) -> Segment:
    """Return the segment of all changes of these files, of the table's own key."""
    return Segment(None, tuple(range(len(files))))
