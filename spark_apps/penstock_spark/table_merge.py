"""One table of a merge, from its plan to its staged pointer, or to the reason why it is paused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from penstock.contract.manifest import FileRef, total
from penstock.engine import segments, target
from penstock.engine.order import Bounds, MergeAnswer
from penstock.engine.segments import Segment
from penstock.errors import LakeError
from penstock.jobs.plans import MergePlan, Replaced, TablePlan, TableResult
from penstock.jobs.pointers import Fresh, Pointer, aside, place_of, replaced
from penstock.lake import properties
from penstock.lake.columns import MISFITS, Evolution, evolution, mirror_columns
from penstock_spark import data_files, landing, table_layout
from penstock_spark.batch import Batch, all_of
from penstock_spark.failures import reason_to_pause
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.lake_table import LakeTable
from penstock_spark.outcome import outcome
from penstock_spark.staging import Staging

COUNTS = (
    *("inserts", "updates", "deletes", "truncates", "rows_deleted", "rows_written"),
    *("update_missing", "delete_missing", "insert_existing", "misfits", "skipped"),
)
_OPS = {"I": "inserts", "U": "updates", "D": "deletes", "T": "truncates"}


def merge_table(
    session: SparkSession, plan: MergePlan, order: TablePlan, environment: Mapping[str, str], threads: int
) -> TableResult:
    """Carry out one table's part of the plan, its task in the driver with so many threads.

    An error that concerns this table alone pauses it and is part of the result; any other ends the application.
    """
    merge = TableMerge(session, plan, order, environment, threads)
    return outcome(session, unmoved(order), merge.landed_files, merge.counts, merge.run)


def unmoved(order: TablePlan) -> TableResult:
    """Report a table that has nothing to do."""
    counts = dict.fromkeys(COUNTS, 0)
    return TableResult(order.oid, order.target, None, order.expected_snapshot, counts, seconds=0.0)


@dataclass
class TableMerge:
    """Merge one table; `counts` outlive an error."""

    session: SparkSession
    plan: MergePlan
    order: TablePlan
    environment: Mapping[str, str]
    threads: int
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.landed = total(self.order.files)
        self.table = self._lake_table(self.order.fresh or self.order.target)
        self.batch = Batch(self.session, self.plan, self.order, self.table, self.environment, self.threads)
        through = self.plan.upto_lsn if self.order.through is None else self.order.through
        self.marks = properties.watermark(self.plan.pipeline, through, self.plan.attempt)
        self.switches = self.order.fresh is not None and self.plan.cut

    def run(self) -> TableResult:
        """Merge, and return what is staged: no pointer where the lake needs no change."""
        order = self.order
        loads = order.copy_files is not None or bool(order.replaced)
        idle = not order.files and not loads and not self.switches
        if idle and not (order.evolve or order.inspect or order.removed):
            return unmoved(order)
        if order.fresh is None and order.shown is not None:
            self.table.require_whole(order.shown)
        there = self._ensure_table()
        changes = self.landed.rows if order.files else 0
        self.counts.update({name: getattr(self.landed, name) for name in _OPS.values()})
        wanted = evolution(order.columns, there.columns_known, there.attnums)
        if not (changes or wanted or order.removed or loads or self.switches):
            return self._unmoved(there)
        return self._merge(there, wanted)

    @property
    def landed_files(self) -> list[str]:
        """Return the landing files that are read."""
        return [file.uri for file in (*self.order.files, *(self.order.copy_files or ()))]

    # --- the steps ----------------------------------------------------------------------------------

    def _merge(self, there: IcebergTable, wanted: Evolution) -> TableResult:
        order, files = self.order, self.order.files
        table_layout.require_known(self.table, there)
        landing.check_changes(self.session, files)
        staged = Staging(self.table, there, self.marks)
        self._require_plain_misfits(staged, wanted)
        staged.evolve(wanted, order.columns)
        there = staged.there
        if order.copy_files is not None:
            self._load(staged, order.copy_files)
        elif there.main is not None:
            some = files and staged.many_files and not order.replaced
            staged.plan_files(self.batch.key_bounds(there, files, wanted) if some else {})
        moved = order.copy_files is not None or self.switches
        if self.landed.rows or order.replaced:
            moved = self._bring(staged, files) or moved
        if order.removed:
            moved = self._remove(staged) or moved
        if not moved and wanted:
            staged.append(())  # a snapshot with the new columns: whoever reads the cut by its snapshot sees them
        elif not moved:
            return self._unmoved(there)
        pointer, head = staged.stage()
        return replace(unmoved(order), pointer=self._pointer(pointer), snapshot_id=head, size=staged.size())

    def _require_plain_misfits(self, staged: Staging, wanted: Evolution) -> None:
        """Raise LakeError("schema-change") where a renamed column's texts stand under its old name in `_misfits`."""
        there = staged.there
        before = {column.name: column for column in there.columns}
        moving = [name for name, _ in wanted.renamed if not before[name].always_fits]
        if not moving or there.main is None:
            return
        if target.hold_misfits(staged.data_paths(), there.ids(MISFITS.name)[0], moving, self.batch.reached(there)):
            raise LakeError(
                "schema-change",
                f"expected no exact texts of {', '.join(moving)} in {MISFITS.name}, which name the column as it was before it "
                "was renamed; copy the table again",
            )

    def _load(self, staged: Staging, files: Sequence[FileRef]) -> None:
        columns = self.order.columns
        landing.check_copy(self.session, files, columns)
        ready = self._ready(staged, files)
        gone, came = staged.replace_all(data_files.take_over(self.table, staged.there, ready))
        self.counts.update(rows_deleted=gone, rows_written=came)
        self._cast(staged, [file for file in files if file.rows and file not in ready])

    def _ready(self, staged: Staging, files: Sequence[FileRef]) -> list[FileRef]:
        """Return the files of whole rows that can be data files of the table as they are."""
        columns = self.order.columns
        ready = [file for file in files if data_files.is_whole(file, columns)]
        return ready if ready and data_files.takes_copies(staged.there, columns) else []

    def _cast(self, staged: Staging, others: Sequence[FileRef]) -> None:
        """Bring in files of whole rows that have to be written as the table's."""
        if others:
            answer = self.batch.merge(staged.there, others, (), all_of(others), copy=True)
            staged.append(answer.files)
            self.counts.update(answer.counts)

    def _bring(self, staged: Staging, files: Sequence[FileRef]) -> bool:
        """Bring landed changes in, those of each key onto what those of the key before have left; return whether there were any."""
        left, moved = self.batch.segments(staged.there, files) if self.landed.rows else (), False
        answers = list[MergeAnswer]()
        for number, each in enumerate(self.order.replaced):
            stays = tuple(later.stays for later in self.order.replaced[number:])
            place = segments.place_of(each.at)
            answers += self._bring_segments(staged, files, segments.before(left, place), stays)
            left = segments.after(left, place)
            moved = self._replace(staged, each) or moved
        answers += self._bring_segments(staged, files, left)
        return self._count_ops([answer.ops for answer in answers]) or moved

    def _bring_segments(
        self,
        staged: Staging,
        files: Sequence[FileRef],
        some: Sequence[Segment],
        within: tuple[tuple[Bounds, ...], ...] = (),
    ) -> list[MergeAnswer]:
        answers = []
        for segment in some:
            answer = self.batch.merge(staged.there, files, tuple(staged.files.values()), segment, within=within)
            if answer.truncated:
                staged.commit_held()
                self._commit(staged, answer)
            else:
                staged.hold(answer)
                self.counts.update(answer.counts)
            answers.append(answer)
        staged.commit_held()
        return answers

    def _replace(self, staged: Staging, wanted: Replaced) -> bool:
        """Replace all rows but those within the bounds that stay; return whether that changed anything."""
        answer = self.batch.remove(staged.there, tuple(staged.files.values()), wanted.stays, others=True)
        if answer.vectors:
            self._commit(staged, answer)
        files = [file for file in wanted.files if file.rows]
        landing.check_copy(self.session, files, self.order.columns)
        ready = self._ready(staged, files)
        if ready:
            staged.append_files(data_files.take_over(self.table, staged.there, ready))
            self.counts.update(rows_written=sum(file.rows for file in ready))
        self._cast(staged, [file for file in files if file not in ready])
        return bool(answer.vectors or files)

    def _count_ops(self, known: Sequence[Mapping[str, int] | None]) -> bool:
        """Count the changes that were not left out, where some may have been; return whether there were any."""
        ops = Counter[str]()
        for each in known:
            if each is None:
                return True
            ops.update(each)
        self.counts.update({name: -self.counts[name] for name in _OPS.values()})
        self.counts.update({_OPS[op]: count for op, count in ops.items()})
        self.counts["skipped"] = self.landed.rows - ops.total()
        return bool(ops)

    def _commit(self, staged: Staging, answer: MergeAnswer) -> None:
        """Commit a task's answer."""
        counts = Counter(answer.counts)
        if answer.truncated:
            gone, _ = staged.replace_all([staged.data_file(new) for new in answer.files])
            counts.update(rows_deleted=gone)
        elif answer.files or answer.vectors:
            staged.apply(answer)
        self.counts.update(counts)

    def _remove(self, staged: Staging) -> bool:
        """Let the rows of partitions go that are gone at the source; return whether there were any."""
        staged.plan_again()
        answer = self.batch.remove(staged.there, tuple(staged.files.values()), self.order.removed)
        if not answer.vectors:
            return False
        staged.apply(answer)
        self.counts.update(answer.counts)
        return True

    def _unmoved(self, there: IcebergTable) -> TableResult:
        return replace(unmoved(self.order), shows=there.metadata_file)

    def _ensure_table(self) -> IcebergTable:
        """See that the table is there and ours; make it where it is not."""
        wanted, order = mirror_columns(self.order.columns), self.order
        there = self.table.find()
        begins = order.fresh and order.expected_snapshot is None
        if begins and there and not set(there.columns) <= set(wanted):
            self.table.drop()  # of a killed run, from before the source changed
            there = None
        if there is None and (order.expected_snapshot is None or order.copy_files is not None):
            known = properties.for_new_table(self.plan.pipeline, self.plan.table_properties, self.plan.era)
            self.table.create(wanted, known)
            there = self.table.find()
        if there is None or not self._is_ours(there):
            raise LakeError(
                "foreign-commit",
                f"expected {'.'.join(order.target)} at snapshot {order.expected_snapshot} or compacted since, "
                "got commits that this pipeline did not publish; copy the table again",
            )
        return there

    def _is_ours(self, there: IcebergTable) -> bool:
        """Return whether the table is as we left it; a copy replaces every row, so there our mark is enough."""
        if self.order.copy_files is not None and there.property(properties.PIPELINE) == self.plan.pipeline:
            return True
        return there.is_ours(self.order.expected_snapshot)

    def _pointer(self, staged: Pointer) -> Pointer:
        """Return what `publish` moves: with a fresh table the target's name, and the table that has it goes aside."""
        if not self.switches:
            return staged
        old, era = (None, 0) if self.order.vacated else self._making_way()
        if self.order.copy_files is not None and era < self.plan.era:
            kept = place_of(aside(self.plan.namespace, self.order.target, era))
        else:
            kept = place_of(replaced(self.plan.namespace, self.order.target, self.order.rebuild or self.plan.attempt))
        return Pointer(
            place_of(self.order.target),
            old=old,
            new=staged.new,
            stamped=staged.stamped,
            fresh=Fresh(staged.place, staged.old or "", kept),
        )

    def _making_way(self) -> tuple[str | None, int]:
        """Return what the catalog shows under the target's name, None if nothing, and the era of that table.

        A table that cannot be read is replaced as the catalog shows it: the fresh one is made to replace it.
        """
        try:
            if self.order.shown is not None:
                self._lake_table(self.order.target).require_whole(self.order.shown)
            return self._known_table()
        except Exception as error:
            failure = reason_to_pause(error, self.session, ".".join(self.order.target), self.landed_files)
            if self.order.shown is None or failure is None or failure.slug != "lake-unreadable":
                raise
            return self.order.shown, self.plan.era - 1

    def _known_table(self) -> tuple[str | None, int]:
        old = self._lake_table(self.order.target).find()
        if old is None:
            return None, 0
        era = old.property(properties.ERA)
        if old.property(properties.PIPELINE) != self.plan.pipeline or era is None:
            raise LakeError(
                "foreign-commit",
                f"expected {'.'.join(self.order.target)} to be a table of this pipeline's, it is of another's; "
                "move it out of the way, then resume the table",
            )
        return old.metadata_file, int(era)

    def _lake_table(self, target: tuple[str, ...]) -> LakeTable:
        return LakeTable(self.session, self.plan.catalog, target)
