"""The engine's part of a table's merge: its orders from the plan, and where they are carried out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.contract.manifest import FileRef
from penstock.engine import segments, task
from penstock.engine import target as target_rows
from penstock.engine.files import Files
from penstock.engine.order import Bounds, Column, MergeAnswer, MergeOrder, Resources, TargetFile
from penstock.engine.segments import Segment
from penstock.jobs.plans import MergePlan, TablePlan
from penstock.lake.columns import MISFITS, Evolution, lake_column
from penstock.shapes.pg_snapshot import Snapshot
from penstock_spark import executors, stores, table_layout
from penstock_spark.executors import Executors, stays_in_driver
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.lake_table import LakeTable


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
        return segments.cut(files, Resources(self.threads, self.plan.task_memory), self.reached(there))

    def key_bounds(
        self, there: IcebergTable, files: Sequence[FileRef], wanted: Evolution
    ) -> dict[str, tuple[int, int]]:
        """Return between which values the keys of the batch lie; nothing where it has several keys, or rows get one of them only now."""
        keys = {column.name for column in self.order.columns if column.key}
        if not keys or keys & {column.name for column in wanted.added} or any(file.key is not None for file in files):
            return {}
        order = self._order(there, files, (), all_of(files), threads=self.threads)
        return target_rows.key_bounds(order, self.reached(there))

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
        return task.merge_spread(wanted, task.shape_of(wanted, executors.slots(context)), reached, Executors(context))

    def remove(
        self, there: IcebergTable, target: Sequence[TargetFile], bounds: Sequence[Bounds], *, others: bool = False
    ) -> MergeAnswer:
        """Let the engine find the rows within these bounds, or all `others`."""
        order = self._order(there, (), target, all_of(()), threads=self.threads)
        return target_rows.remove(order, bounds, self.reached(there), others=others)

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
        """Order to bring a segment of these landed files into the Iceberg table `there`, whose data files are `target`."""
        plan, order = self.plan, self.order
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
        return MergeOrder(
            columns=columns,
            misfits_ids=there.ids(MISFITS.name),
            landed=tuple(files[at] for at in segment.files),
            target=tuple(target),
            layout=table_layout.layout(self.table, there, columns),
            copy=copy,
            identity=order.identity,
            skip=plan.skip_commit_lsns,
            seen_by=Snapshot.parse(order.copy_snapshot) if order.copy_snapshot and not copy else None,
            before=order.before,
            since=segment.since,
            until=segment.until,
            within=within,
            stop_on_conflict=plan.on_conflict == "fail",
            stop_on_misfit=plan.on_misfit == "fail",
            resources=Resources(threads, plan.task_memory),
        )


def all_of(files: Sequence[FileRef]) -> Segment:
    """Return the segment of all changes of these files, of the table's own key."""
    return Segment(None, tuple(range(len(files))))
