"""One table's batch, from an order to an answer: a function of files, in any process, without Spark or a catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.engine import duck, keyed, keyless
from penstock.engine.changes import open_changes
from penstock.engine.duck import literal
from penstock.engine.failure import EngineFailure
from penstock.engine.files import Files
from penstock.engine.order import MergeAnswer, MergeOrder, Resources, new_location
from penstock.errors import LakeError

Answer = TypeVar("Answer")


def merge(order: MergeOrder, files: Files) -> MergeAnswer:
    """Carry an order out: write data files and deletion vectors, and say what is to be committed.

    Raises LakeError of a kind that pauses the table, and EngineFailure; what was written then counts for nothing.
    """
    with duck.connect(order.resources, files, len(order.columns)) as db:
        if order.copy:
            return keyless.load(db, order)
        changes = open_changes(db, order)
        if order.keys:
            return keyed.apply(db, changes)
        return keyless.append(db, changes) if order.grows_only else keyless.apply(db, changes)


def attempt(work: Callable[[], Answer]) -> Answer | LakeError | EngineFailure:
    """Do a piece of work, and return what it raises: plain data, for a task in another process."""
    try:
        return work()
    except (LakeError, EngineFailure) as error:
        return error


def probe(files: Files, folder: str) -> None:
    """See whether engine and store work at all: write a file of one row below a folder of the lake, read and delete it.

    Raises EngineFailure.
    """
    location = new_location(f"{folder.rstrip('/')}/data", "-probe.parquet")
    files.lake.make_folder(location)
    with duck.connect(Resources(), files) as db:
        db.execute(f"copy (select 1 as one) to {literal(files.lake.path(location))} (format parquet)")
        db.row(f"select one from read_parquet({db.stored([location])})")
    files.lake.delete(location)
