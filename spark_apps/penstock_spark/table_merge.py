"""One table of a merge, from its plan to its staged pointer, or to the reason why it is paused."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from penstock.conditions import Directive
from penstock.contract.manifest import ChangeCounts
from penstock.errors import LakeError
from penstock.jobs.merge_plan import FileRef, MergePlan, TablePlan, TableResult
from penstock.jobs.pointers import Fresh, Pointer, aside, place_of, replaced
from penstock.lake import properties
from penstock.lake.columns import additions, mirror_columns
from penstock_spark import data_files, keyed, keyless, landing
from penstock_spark.batch import Batch, Kept
from penstock_spark.failures import OwnFailureError, frames, own_failure
from penstock_spark.lake_table import LakeTable
from penstock_spark.resolve import Mirror
from penstock_spark.session import configure, fit_to

COUNTS = (
    *("inserts", "updates", "deletes", "truncates", "rows_deleted", "rows_written"),
    *("update_missing", "delete_missing", "insert_existing", "misfits", "skipped"),
)
_OPS = {"I": "inserts", "U": "updates", "D": "deletes", "T": "truncates"}

_log = logging.getLogger("penstock.merge")


def merge_table(session: SparkSession, plan: MergePlan, order: TablePlan) -> TableResult:
    """Carry out one table's part of the plan.

    An error that concerns this table alone pauses it and is part of the result; any other ends the application.
    """
    started = time.monotonic()
    merge = TableMerge(session, plan, order)
    staged, error = Staged(), None
    try:
        staged = merge.run()
    except Exception as raised:
        error = merge.own_failure(raised)
        if error is None:
            raise
        merge.give_up()
    finally:
        merge.keep.release()
    seconds = time.monotonic() - started
    counts = {name: merge.counts[name] for name in COUNTS}
    _log_end(order, counts, seconds, error)
    return TableResult(
        oid=order.oid,
        target=order.target,
        pointer=staged.pointer,
        snapshot_id=staged.snapshot_id,
        counts=counts,
        seconds=round(seconds, 3),
        paused_slug=error.slug if error else None,
        paused_reason=error.message if error else None,
        failure=error.cause if isinstance(error, OwnFailureError) else None,
        shows=staged.shows,
    )


@dataclass(frozen=True, slots=True)
class Staged:
    """Hold what a table is to be published as.

    Without a pointer it stays at `snapshot_id`; `shows` is the metadata file that the catalog shows then, where it was
    looked at.
    """

    pointer: Pointer | None = None
    snapshot_id: int | None = None
    shows: str | None = None


@dataclass
class TableMerge:
    """Merge one table; `counts` and what `keep` holds outlive an error. `damaged` is one that the catalog cannot open."""

    session: SparkSession
    plan: MergePlan
    order: TablePlan
    keep: Kept = field(default_factory=Kept)
    counts: Counter[str] = field(default_factory=Counter)
    damaged: bool = False

    def __post_init__(self) -> None:
        self.landed = sum((file.counts for file in self.order.files), ChangeCounts())
        self.table = self._lake_table(self.order.fresh or self.order.target)
        through = self.plan.upto_lsn if self.order.through is None else self.order.through
        self.marks = properties.watermark(self.plan.pipeline, through, self.plan.attempt)
        self.switches = self.order.fresh is not None and self.plan.cut

    def run(self) -> Staged:
        """Merge, and return what is staged: no pointer where the lake needs no change."""
        order = self.order
        if not order.files and order.copy_files is None and not self.switches:
            if not (order.evolve or order.look):
                return Staged(snapshot_id=order.expected_snapshot)
            self._require_whole()
            self._ensure_table()
            return self._unmoved()
        self._require_whole()
        configure(self.session, properties.snapshot_conf(self.marks))
        fit_to(self.session, sum(file.bytes for file in (*order.files, *(order.copy_files or ()))))
        self._ensure_table()
        changes = self._changes()
        if changes is None and order.copy_files is None and not self.switches:
            return self._unmoved()
        start = self.table.main()
        self.table.cut_branch()
        truncated_at = landing.last_truncate(changes) if changes and self.counts["truncates"] else None
        if order.copy_files is not None and truncated_at is None:
            start = self._load(order.copy_files)
        if changes is not None:
            self._apply(changes, start, truncated_at)
        return Staged(self._pointer(self.table.stage(self.marks)), self.table.head())

    def own_failure(self, error: Exception) -> LakeError | None:
        """Return the reason for which an error pauses this table, or None where it concerns the whole run."""
        if isinstance(error, LakeError):
            return error if error.directive is Directive.PAUSE else None
        landed = [file.uri for file in (*self.order.files, *(self.order.copy_files or ()))]
        failure = own_failure(error, self.session, ".".join(self.order.target), landed)
        if failure is not None:  # Spark's own text may quote values
            _log.error("%s: %s in\n  %s", ".".join(self.order.target), failure.cause, "\n  ".join(frames(error)))
        return failure

    def give_up(self) -> None:
        """Leave nothing of this attempt on a table that is paused; maintenance drops what cannot be dropped now."""
        try:
            if not self.damaged and self.table.exists():
                self.table.drop_branch()
        except Exception as error:
            if self.own_failure(error) is None:
                raise

    # --- the steps ----------------------------------------------------------------------------------

    def _unmoved(self) -> Staged:
        return Staged(snapshot_id=self.order.expected_snapshot, shows=self.table.location())

    def _require_whole(self) -> None:
        """See that the table can be opened, before anything looks at it again and again."""
        if self.order.fresh is None and self.order.shown is not None:
            self.damaged = True
            self.table.require_whole(self.order.shown)
            self.damaged = False

    def _ensure_table(self) -> None:
        """See that the table is there, is ours, and has the columns; make it or add columns where it needs that."""
        wanted = mirror_columns(self.order.columns)
        begins = self.order.fresh and self.order.expected_snapshot is None
        if begins and self.table.exists() and not set(self.table.columns()) <= set(wanted):
            self.table.drop()  # of a killed run, from before the source changed
        if not self.table.exists() and (self.order.expected_snapshot is None or self.order.copy_files is not None):
            known = properties.for_new_table(self.plan.pipeline, self.plan.table_properties, self.plan.era)
            self.table.create(wanted, known)
        if not self._is_ours():
            raise LakeError(
                "foreign-commit",
                f"expected {'.'.join(self.order.target)} at snapshot {self.order.expected_snapshot} or compacted since, "
                "got commits that this pipeline did not publish; copy the table again",
            )
        new = additions(self.order.columns, self.table.columns())
        if new:
            self.table.add_columns(new)

    def _is_ours(self) -> bool:
        """Return whether the table is as we left it; a copy replaces every row, so there our mark is enough."""
        if not self.table.exists():
            return False
        replaced = self.order.copy_files is not None
        if replaced and self.table.property(properties.PIPELINE) == self.plan.pipeline:
            return True
        return self.table.is_ours(self.order.expected_snapshot)

    def _pointer(self, staged: Pointer) -> Pointer:
        """Return what `publish` moves: with a fresh table the target's name, and the table that has it goes aside."""
        if not self.switches:
            return staged
        old, era = self._making_way()
        if self.order.rebuild is not None:
            kept = place_of(replaced(self.plan.namespace, self.order.target, self.order.rebuild))
        else:
            kept = place_of(aside(self.plan.namespace, self.order.target, era))
        return Pointer(
            *place_of(self.order.target),
            old=old,
            new=staged.new,
            fresh=Fresh(*staged.place, staged.old or "", *kept),
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
            failure = self.own_failure(error)
            if self.order.shown is None or failure is None or failure.slug != "lake-unreadable":
                raise
            return self.order.shown, self.plan.era - 1

    def _known_table(self) -> tuple[str | None, int]:
        old = self._lake_table(self.order.target)
        if not old.exists():
            return None, 0
        era = old.property(properties.ERA)
        if old.property(properties.PIPELINE) != self.plan.pipeline or era is None:
            raise LakeError(
                "foreign-commit",
                f"expected {'.'.join(self.order.target)} to be a table of this pipeline's, it is of another's; "
                "move it out of the way, then resume the table",
            )
        return old.location(), int(era)

    def _lake_table(self, target: tuple[str, ...]) -> LakeTable:
        return LakeTable(self.session, self.plan.catalog, target, self.plan.branch)

    def _changes(self) -> DataFrame | None:
        """Return the changes to merge, and count them; None where there are none."""
        files = self.order.files
        if not files:
            return None
        read = landing.read(self.session, files, self.order.columns)
        seen_by = landing.SourceSnapshot.parse(self.order.copy_snapshot) if self.order.copy_snapshot else None
        if not self.plan.skip_commit_lsns and seen_by is None and self.order.before is None:
            self.counts.update({name: getattr(self.landed, name) for name in _OPS.values()})
            return read if self.landed.rows else None
        changes = landing.leave_out(read, self.plan.skip_commit_lsns, seen_by, self.order.before)
        found = {_OPS[row["op"]]: row["count"] for row in changes.groupBy("op").count().collect()}
        self.counts.update(found)
        self.counts["skipped"] = self.landed.rows - sum(found.values())
        return changes if found else None

    def _load(self, files: Sequence[FileRef]) -> int:
        """Replace the table's rows by a copy's; returns the snapshot that holds them."""
        columns = self.order.columns
        landing.check_copy(self.session, files, columns)
        ready = [file for file in files if data_files.is_whole(file, columns)]
        if ready and not data_files.takes_copies(self.table, columns):
            ready = []
        gone, came = data_files.replace_all(self.table, ready, self.marks)
        self.counts.update(rows_deleted=gone, rows_written=came)
        others = [file for file in files if file.rows and file not in ready]
        if others:
            nothing = landing.read(self.session, [], columns)
            batch = self._batch(nothing, Mirror(columns), start=None, truncated=False)
            keyless.load(batch, landing.read_copy(self.session, others, columns))
        return self.table.head()

    def _apply(self, changes: DataFrame, start: int | None, truncated_at: tuple[int, int] | None) -> None:
        """Bring the changes onto the branch, in the way that the table's identity asks for."""
        if truncated_at:
            changes = landing.after(changes, truncated_at)
        changes = changes.where("op <> 'T'")
        batch = self._batch(changes, self._mirror(changes), start=start, truncated=truncated_at is not None)
        if batch.mirror.keys:
            keyed.apply(batch)
        elif self.order.identity == "f" or self.landed.old_full:
            keyless.apply(batch)
        elif self.landed.updates or self.landed.deletes:
            raise LakeError(
                "schema-change",
                "expected inserts only for a table without a replica identity, got updates or deletes; "
                "the identity has changed: copy the table again",
            )
        else:
            keyless.append(batch)

    def _mirror(self, changes: DataFrame) -> Mirror:
        if not self.landed.unchanged:
            return Mirror(self.order.columns)
        left_out = landing.left_out(changes)
        positions = {column.name: position for position, column in enumerate(self.order.columns)}
        return Mirror(
            self.order.columns,
            unchanged=frozenset(positions[name] for name in left_out),
            holes=any(unknown for name, unknown in left_out.items() if not self.order.columns[positions[name]].key),
        )

    def _batch(self, changes: DataFrame, mirror: Mirror, *, start: int | None, truncated: bool) -> Batch:
        return Batch(
            table=self.table,
            mirror=mirror,
            changes=changes,
            start=start,
            truncated=truncated,
            moves=self.landed.old_key + self.landed.old_full > self.landed.deletes,
            stop_on_conflict=self.plan.on_conflict == "fail",
            stop_on_misfit=self.plan.on_misfit == "fail",
            keep=self.keep,
            counts=self.counts,
        )


def _log_end(order: TablePlan, counts: Mapping[str, int], seconds: float, error: LakeError | None) -> None:
    name = ".".join(order.target)
    if error:
        _log.error("%s: paused after %.1f s: %s", name, seconds, error)
    else:
        summary = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing to do"
        _log.info("%s: %s, %.1f s", name, summary, seconds)
