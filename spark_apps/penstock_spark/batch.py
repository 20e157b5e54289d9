"""What the ways of applying a batch have in common: the changes, where they go, and what they must watch for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from penstock.errors import LakeError
from penstock_spark import write
from penstock_spark.lake_table import LakeTable
from penstock_spark.resolve import Mirror


class Kept:
    """Persist frames that are read more than once, until the table is done."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def __call__(self, frame: DataFrame) -> DataFrame:
        self._frames.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return self._frames[-1]

    def pinned(self, frame: DataFrame) -> DataFrame:
        """Compute a frame that reads the lake now, once and for all.

        What is merely persisted Spark computes again, from then on, as soon as the table it reads is written.
        """
        return frame.localCheckpoint(eager=True)

    def release(self) -> None:
        """Drop what was persisted."""
        for frame in self._frames:
            frame.unpersist()
        self._frames.clear()


@dataclass(frozen=True)
class Batch:
    """Hold the changes to apply to a branch.

    `start` is the snapshot that they apply to, None where there are no rows yet. `truncated` says that the rows
    there are to go, and the changes after the truncation are all that counts. `moves` says that updates may carry
    an old key.
    """

    table: LakeTable
    mirror: Mirror
    changes: DataFrame
    start: int | None
    truncated: bool
    moves: bool
    stop_on_conflict: bool
    stop_on_misfit: bool
    keep: Kept
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def onto_nothing(self) -> bool:
        """Return whether no row of the lake can matter to the changes."""
        return self.truncated or self.start is None

    def add(self, rows: DataFrame, *, any_rows: bool) -> None:
        """Write rows as they are, after a truncation in place of all others."""
        if self.truncated:
            gone, came = write.replace_all(self.table, rows)
            self.counts.update(rows_deleted=gone, rows_written=came)
        elif any_rows:
            self.counts["rows_written"] += write.append(self.table, rows)

    def note_misfits(self, misfits: int) -> None:
        """Count values that do not fit; raises LakeError("misfit-refused") where the pipeline wants none."""
        self.counts["misfits"] += misfits
        if misfits and self.stop_on_misfit:
            raise LakeError(
                "misfit-refused",
                f"expected every value to fit its column, got {misfits} that do not; "
                "set merge.on_misfit to keep, or leave the transaction out",
            )

    def note_conflicts(self, **conflicts: int) -> None:
        """Count changes that met what they should not; raises LakeError("merge-conflict") where none is wanted."""
        self.counts.update(conflicts)
        found = ", ".join(f"{kind} {count}" for kind, count in conflicts.items() if count)
        if found and self.stop_on_conflict:
            raise LakeError(
                "merge-conflict",
                f"expected each change to meet the row it speaks of, and inserts none, got: {found}; "
                "set merge.on_conflict to continue, or copy the table again",
            )
