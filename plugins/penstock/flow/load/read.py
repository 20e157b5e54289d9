"""Read rows of tables under one snapshot: the one loop of first copies, resyncs and fetches, with one rule for another try.

The catalog is read once in the snapshot, and what is read is decided by that. When Spark has ended it is read once more,
unless the first capture does that anyway: a table that was changed meanwhile is read again under a later snapshot.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar

from penstock.conditions import Directive
from penstock.contract.manifest import FileEntry
from penstock.errors import PenstockError, SourceError
from penstock.flow.context import Context
from penstock.flow.load.spark_copy import Earlier, ReadRequest, copied_files, copy_tables
from penstock.flow.spark_job import Submit
from penstock.ledger import new_attempt
from penstock.ledger.table_records import LoadRecord
from penstock.lsn import Lsn
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog_snapshot, server_info, session, types
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.slot import Exported

K = TypeVar("K")

TRIES = 5
"""So often a table is read that is truncated, rewritten or altered before that is done."""


class Reads(ABC):
    """Say which tables wait for their rows, under which snapshot they are read, and how they are landed."""

    seen_by_capture = False
    """Whether the first capture notices what was changed since the snapshot."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.failed: Mapping[int, PenstockError] = {}  # why tables were not read by the last try
        self.seen = Lsn(0)  # the position after which the catalog was read for the second time

    @abstractmethod
    def waits(self, but: Collection[int]) -> bool:
        """Return whether a table is still to be read, `but` those of these oids."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Exported]:
        """Hold a snapshot to read under; raises SourceError."""

    @abstractmethod
    def requests(
        self, found: CatalogSnapshot, but: Collection[int]
    ) -> tuple[Sequence[ReadRequest], Mapping[int, PenstockError]]:
        """Return what to read of the tables as the snapshot shows them, and by oid why some cannot be read."""

    @abstractmethod
    def unlanded(self) -> Sequence[LoadRecord]:
        """Return what is being read, whether or not it has come to its end."""

    @abstractmethod
    def land(self, load: LoadRecord, files: Sequence[FileEntry], now: SourceTable | None) -> PenstockError | None:
        """Take in what was read, if the table is as the snapshot showed it; return why it has to be read again.

        `now` is the table when all was read, after the position `seen`.
        """

    def earlier(self) -> Earlier:
        """Return what earlier tries have read."""
        return Earlier()


def read_tables(ctx: Context, reads: Reads, submit: Submit) -> dict[int, PenstockError]:
    """Read and land what waits; return why the rest could not be, by oid. What a dead run has read to its end is landed first.

    Raises SourceError, LakeError, LedgerError for what concerns all of them.
    """
    _land(ctx, reads)
    return retried(reads.waits, lambda but: _read(ctx, reads, but, submit))


def retried(
    waits: Callable[[Collection[K]], bool],
    read: Callable[[Collection[K]], Mapping[K, PenstockError]],
    tries: int = TRIES,
) -> dict[K, PenstockError]:
    """Read while something waits, so often at most; return why the rest could not be read.

    What failed is read again where a later snapshot may be read; `waits` and `read` get those where that is not so.
    """
    failed: dict[K, PenstockError] = {}
    for _ in range(tries):
        given_up = {key: error for key, error in failed.items() if not _passes(error)}
        if not waits(given_up.keys()):
            return failed
        failed = given_up | dict(read(given_up.keys()))
    return failed


def _passes(error: PenstockError) -> bool:
    """Return whether another try may succeed by itself; open transactions have been waited for already."""
    return error.directive is Directive.RETRY and error.slug != "table-joining"


def _read(ctx: Context, reads: Reads, but: Collection[int], submit: Submit) -> dict[int, PenstockError]:
    """Read what waits under one snapshot, and land it."""
    with reads.snapshot() as exported:
        requests, refused = reads.requests(catalog_at(ctx, exported), but)
        if not requests:
            return dict(refused)
        copy_id, earlier, changed = new_attempt(), reads.earlier(), dict[int, PenstockError]()
        ctx.ledger.loads.start_reads(
            ctx.name,
            copy_id=copy_id,
            snapshot=exported.snapshot,
            lsn=exported.lsn,
            reads=[each.new for each in requests],
        )
        try:
            unread = copy_tables(ctx, exported, copy_id, requests, submit, earlier=earlier)
        finally:
            changed = _land(ctx, reads)
    reads.failed = {**refused, **unread, **changed}
    return dict(reads.failed)


def _land(ctx: Context, reads: Reads) -> dict[int, PenstockError]:
    """Land what is proved by its result, whatever became of the run that has read it; return why some was read in vain."""
    proved = [(load, copied_files(ctx, load.copy_id, load.oid, load.qualified)) for load in reads.unlanded()]
    done = [(load, files) for load, files in proved if files is not None]
    if not done:
        return {}
    now = {} if reads.seen_by_capture else _tables_after(reads)
    failed = ((load.oid, reads.land(load, files, now.get(load.oid))) for load, files in done)
    return {oid: error for oid, error in failed if error is not None}


def catalog_at(ctx: Context, exported: Exported, *, sizes: bool = True) -> CatalogSnapshot:
    """Return the publication and its tables as the snapshot shows them: who is a member, and by which filter, too; raises SourceError."""
    with session.connect(ctx.source, what=f"{ctx.name}:copy") as conn, conn.snapshot(exported.snapshot_name):
        return _read_catalog(ctx, conn, sizes=sizes)


def catalog_now(ctx: Context, *, sizes: bool = False) -> CatalogSnapshot:
    """Return the publication and its tables as they are now; raises SourceError."""
    with session.connect(ctx.source, what=f"{ctx.name}:resync") as conn:
        return _read_catalog(ctx, conn, sizes=sizes)


def _tables_after(reads: Reads) -> dict[int, SourceTable]:
    with session.connect(reads.ctx.source, what=f"{reads.ctx.name}:resync") as conn:
        reads.seen = server_info.flushed(conn)
        return _read_catalog(reads.ctx, conn, sizes=False).by_oid


def _read_catalog(ctx: Context, conn: session.SourceSession, *, sizes: bool) -> CatalogSnapshot:
    found = catalog_snapshot.read_catalog(conn, ctx.pipeline.publication, sizes=sizes)
    return replace(found, tables=tuple(types.as_chosen(ctx.pipeline, table) for table in found.tables))


def changed_meanwhile(name: str, why: str) -> SourceError:
    """Make the error of a table that was changed before it was read."""
    return SourceError("table-rewritten", f"expected {name} to stay as it is while it is read, but {why}")
