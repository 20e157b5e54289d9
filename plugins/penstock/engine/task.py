"""One table's batch, from an order to an answer: a function of files, in any process, without Spark or a catalog."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import duckdb

from penstock.engine import duck, keyed, keyless, segments, target
from penstock.engine.changes import open_changes
from penstock.engine.duck import literal
from penstock.engine.failure import EngineFailure
from penstock.engine.files import Files
from penstock.engine.order import Bounds, LandedFile, MergeAnswer, MergeOrder, ResolvedCell, Resources, new_location
from penstock.engine.segments import Key, Segment
from penstock.engine.write import Written
from penstock.errors import LakeError

Answer = TypeVar("Answer")


def merge(order: MergeOrder, files: Files) -> MergeAnswer:
    """Carry an order out: write data files and deletion vectors, and say what is to be committed.

    Raises LakeError of a kind that pauses the table, and EngineFailure; what was written then counts for nothing.
    """
    started, cpu = time.perf_counter(), time.process_time()
    with _failures(order):
        answer = _carry_out(order, files)
    seconds = {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    return replace(answer, seconds=seconds)


def resolve_cell(order: MergeOrder, files: Files) -> ResolvedCell:
    """Settle the cell of a split order, of a table with a key; raises as `merge` does."""
    with _failures(order), duck.connect(order.resources, files) as db:
        return keyed.resolve_cell(db, open_changes(db, order))


def remove(order: MergeOrder, bounds: Sequence[Bounds], files: Files, *, others: bool = False) -> MergeAnswer:
    """Write deletion vectors for the rows of the order's data files within these bounds, or all `others`; raises as `merge` does."""
    with _failures(order), duck.connect(order.resources, files) as db:
        return target.remove(db, order, bounds, others=others)


def write_live(order: MergeOrder, live: Sequence[bytes], files: Files) -> Written:
    """Write those rows of the order's landed files that live, as each one's bitmap says; raises as `merge` does."""
    with _failures(order), duck.connect(order.resources, files) as db:
        return keyed.write_live(db, open_changes(db, order), live)


@contextmanager
def _failures(order: MergeOrder) -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        if (failure := EngineFailure.of(error)).trouble:
            raise failure from None
        raise LakeError(
            "merge-failed",
            f"expected to merge {sum(file.rows for file in order.landed)} changes in {(order.resources.memory_bytes or 0) >> 20} "
            "MiB of memory and the disk, got out of memory, as by a very large row; raise spark.task_memory, then resume "
            "the table",
        ) from None
    except duckdb.Error as error:
        raise EngineFailure.of(error) from None


def key_bounds(order: MergeOrder, files: Files) -> dict[str, tuple[int, int]]:
    """Return the least and the greatest value of each whole number of the key in the landed changes, by column.

    Data files outside of them cannot hold a row that the batch touches. Raises EngineFailure.
    """
    try:
        with duck.connect(order.resources, files, len(order.columns)) as db:
            return target.key_bounds(db, open_changes(db, order))
    except duckdb.Error as error:
        raise EngineFailure.of(error) from None


def cut(landed: Sequence[LandedFile], keys: Sequence[Key], resources: Resources, files: Files) -> tuple[Segment, ...]:
    """Return the segments of a batch, each of changes of one key; raises EngineFailure."""
    if (whole := segments.of_one_key(keys)) is not None:
        return whole
    try:
        with duck.connect(resources, files) as db:
            return segments.cut(db, landed, keys)
    except duckdb.Error as error:
        raise EngineFailure.of(error) from None


def hold_misfits(paths: Sequence[str], misfits_id: int, names: Sequence[str], files: Files) -> bool:
    """Return whether a row of these data files has, or had, a misfit of one of these columns; raises EngineFailure."""
    if not paths:
        return False
    try:
        with duck.connect(Resources(), files) as db:
            return target.hold_misfits(db, paths, misfits_id, names)
    except duckdb.Error as error:
        raise EngineFailure.of(error) from None


def attempt(work: Callable[[], Answer]) -> Answer | LakeError | EngineFailure:
    """Do a piece of work, and return what it raises: plain data, for a task in another process."""
    try:
        return work()
    except (LakeError, EngineFailure) as error:
        return error


def _carry_out(order: MergeOrder, files: Files) -> MergeAnswer:
    with duck.connect(order.resources, files, len(order.columns)) as db:
        if order.copy:
            return keyless.load(db, order)
        changes = open_changes(db, order)
        if order.keys:
            return keyed.apply(db, changes)
        return keyless.append(db, changes) if order.grows_only else keyless.apply(db, changes)


def probe(files: Files, folder: str) -> None:
    """See whether engine and store work at all: write a file of one row below a folder of the lake, read and delete it.

    Raises EngineFailure.
    """
    location = new_location(f"{folder.rstrip('/')}/data", "-probe.parquet")
    files.lake.make_folder(location)
    try:
        with duck.connect(Resources(), files) as db:
            db.execute(f"copy (select 1 as one) to {literal(files.lake.path(location))} (format parquet)")
            db.row(f"select one from read_parquet({db.stored([location])})")
    except duckdb.Error as error:
        raise EngineFailure.of(error) from None
    files.lake.delete(location)
