"""What a merge takes from the ledger, and what its publication says of each table. The newest cut is where it begins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from penstock.contract.manifest import FileEntry
from penstock.jobs.plans import MET
from penstock.jobs.pointers import Rename
from penstock.ledger.loads import BUILDS, FETCHES, loads
from penstock.ledger.pipelines import find
from penstock.ledger.records import CutRecord, PipelineRecord, WindowRecord
from penstock.ledger.session import Statements, Transaction
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.ledger.tables import tables as tables_of
from penstock.ledger.windows import windows
from penstock.lsn import Lsn


@dataclass(frozen=True)
class PublishedTable:
    """Say that a table is complete through the cut.

    `snapshot_id` is the lake's new main, None where it did not move; `load` is what took the table's place, under the name `target`
    if that is not what it is to be by now. `shows` is the metadata file that the catalog shows from now on, None where that is as
    before, with columns of which `columns` is the stamp. `done` is there for a table that moved: what the cut did to it, by the
    columns of `table_cut`.
    """

    oid: int
    snapshot_id: int | None = None
    load: str | None = None
    target: tuple[str, ...] | None = None
    shows: str | None = None
    columns: str | None = None
    update_missing: int = 0
    delete_missing: int = 0
    insert_existing: int = 0
    misfits: int = 0
    done: Mapping[str, float] | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Return what its merge counted besides rows, by name; nothing where there was nothing."""
        found = {name: getattr(self, name) for name in MET}
        return {name: count for name, count in found.items() if count}


@dataclass(frozen=True)
class MergeQueue:
    """Hold what is due to be merged, all read at one moment.

    `tables` are those that the lake has. `windows` are those that at least one of them, or of what is to take a place, does not have
    yet; `upto` is the position of the next cut, the first barrier that has none if there is one
    (`marked`); `rebuilds` are first copies and rebuilds that can take their place in it; `targets` are the names of the lake's tables by oid, `renames`
    those that some take in the cut; `dropped` are the tables that left; `fetches` are those that their tables do not have yet.
    """

    pipeline: PipelineRecord
    upto: Lsn
    windows: tuple[WindowRecord, ...]
    tables: tuple[TableRecord, ...]
    last_cut: CutRecord | None
    rebuilds: tuple[LoadRecord, ...] = ()
    targets: dict[int, tuple[str, ...]] = field(default_factory=dict)
    marked: bool = False
    fetches: tuple[LoadRecord, ...] = ()
    dropped: tuple[TableRecord, ...] = ()
    renames: tuple[Rename, ...] = ()

    def files(self, table: TableRecord) -> list[FileEntry]:
        """Return the landing files that a table does not have yet, in order."""
        return [file for _, file in self.placed(table)]

    def replacing(self, table: TableRecord) -> list[LoadRecord]:
        """Return the fetches of partitions' rows that a table does not have yet, in order."""
        return [each for each in self.fetches if each.oid == table.oid and each.stays is not None]

    def placed(self, table: TableRecord) -> list[tuple[Lsn, FileEntry]]:
        """Return the landing files that a table does not have yet, in order, each with the beginning of its window."""
        done = table.complete_through or Lsn(0)
        end = self.upto if table.left_lsn is None else table.left_lsn
        return [(since, file) for since, upto, file in self._files.get(table.oid, ()) if done < upto <= end]

    @cached_property
    def _files(self) -> Mapping[int, Sequence[tuple[Lsn, Lsn, FileEntry]]]:
        """Return the files of all windows by oid, each with the ends of its window, in order.

        Fetched values of columns are in the window that contains their position.
        """
        found: dict[int, list[tuple[Lsn, Lsn, FileEntry]]] = {}
        for window in self.windows:
            for file in window.files:
                found.setdefault(file.oid, []).append((window.from_lsn, window.upto_lsn, file))
            for fetch in self.fetches:
                if fetch.stays is None and window.from_lsn < fetch.lsn <= window.upto_lsn:
                    placed = ((window.from_lsn, window.upto_lsn, file) for file in fetch.files)
                    found.setdefault(fetch.oid, []).extend(placed)
        return found


def newest_cut(
    ledger: Statements, name: str, *, attempt: str | None = None, lsn: Lsn | None = None
) -> CutRecord | None:
    """Return the newest cut, that of an attempt, or that of this era at exactly this position."""
    return next(iter(ledger.records(CutRecord, "merges/cuts", name=name, attempt=attempt, lsn=lsn, limit=1)), None)


def merge_queue(transaction: Transaction, name: str) -> MergeQueue:
    """Return everything that is due to be merged; raises LedgerError("not-bootstrapped")."""
    pipeline = find(transaction, name).with_slot()
    after: dict[int, Lsn] = dict(transaction.rows("merges/merge_from", name=name))
    ((upto, marked),) = transaction.rows("merges/cut_upto", name=name)
    landed = loads(transaction, name, ("first", *FETCHES, *BUILDS), states=["landed", "ready"])
    ready = [each for each in landed if each.state == "ready"]
    starts = [*after.values(), *(each.through_lsn for each in ready if each.through_lsn is not None)]
    reached = [each for each in ready if max(each.through_lsn or 0, each.lsn) <= upto]
    least = min(starts, default=pipeline.position)
    due = windows(transaction, name, after=least, through=upto, states=["staged", "confirmed"])
    known = tables_of(transaction, name)
    tables = [table for table in known if table.state == "ready" and table.oid in after]
    copied = {(table.oid, table.copy_id) for table in known if table.state == "copied"}
    through = {table.oid: table.complete_through or Lsn(0) for table in tables}
    fetched = [
        each for each in landed if each.cause in FETCHES and each.lsn > max(least, through.get(each.oid, each.lsn))
    ]
    return MergeQueue(
        pipeline=pipeline,
        upto=upto,
        marked=marked,
        fetches=tuple(sorted(fetched, key=lambda each: (each.lsn, each.oid))),
        windows=tuple(due),
        tables=tuple(tables),
        last_cut=newest_cut(transaction, name),
        rebuilds=tuple(each for each in reached if each.cause != "first" or (each.oid, each.copy_id) in copied),
        targets=_targets(known),
        dropped=tuple(table for table in known if table.state == "dropped"),
    )


def _targets(known: Iterable[TableRecord]) -> dict[int, tuple[str, ...]]:
    """Return the names of the lake's tables by oid: one that is yet to be copied has none while another table has it."""
    there = {table.oid: table.target for table in known if table.state != "dropped" and table.snapshot_id is not None}
    held = set(there.values())
    new = {table.oid: table.target for table in known if table.state != "dropped" and table.target not in held}
    return new | there
