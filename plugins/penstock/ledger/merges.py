"""Publish the cut: every table moves to one position at once, or none does.

`begin_merge` hands out the only attempt that may publish. A published attempt is known by its cut, so a publisher
whose answer got lost may simply ask again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from penstock.config.connections import Connection
from penstock.errors import LedgerError
from penstock.jobs.pointers import Place, Pointer, Rename
from penstock.ledger.advisory_lock import new_attempt
from penstock.ledger.iceberg_pointers import move_pointers
from penstock.ledger.merge_queue import MergeQueue, PublishedTable, merge_queue, newest_cut
from penstock.ledger.pipelines import find, lock_active
from penstock.ledger.records import CutRecord, TableWork
from penstock.ledger.session import Part, Transaction, recordset
from penstock.lsn import Lsn

_NOTHING: Mapping[Place, str | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NewCut:
    """Hold what a merge brings to one position: `tables` are all that are complete through `lsn`, touched or not.

    `cuts_snapshot_id` is the snapshot of the lake's table of cuts that has it.
    """

    attempt: str
    lsn: Lsn
    tables: Sequence[PublishedTable]
    cuts_snapshot_id: int
    rows: int = 0
    renames: Sequence[Rename] = ()


@dataclass(frozen=True)
class Reached:
    """Say how far a pipeline is on its way to a barrier.

    `cut` is the cut at it; where `reachable` is false a window has passed over the place, and no cut can lie there.
    """

    position: Lsn | None
    reachable: bool
    cut: CutRecord | None


class Merges(Part):
    """Record merges and their cuts."""

    def to_merge(self, name: str) -> MergeQueue:
        """Return everything that is due to be merged; raises LedgerError("not-bootstrapped")."""
        with self.transaction(frozen=True) as transaction:
            return merge_queue(transaction, name)

    def begin(self, name: str, *, halted: bool = False) -> str:
        """Return a new attempt; from now on no older one can publish. With `halted` a halted pipeline will do.

        Raises LedgerError: "pipeline-halted", "not-bootstrapped" (no slot yet, or tables that are still to be copied).
        """
        attempt = new_attempt()
        with self.transaction() as transaction:
            known = lock_active(transaction, name, halted=halted)
            if not transaction.change("merges/begin_merge", name=name, attempt=attempt):
                raise LedgerError(
                    "not-bootstrapped",
                    f"expected every table of {name} to be copied before a merge, but it is {known.state}; "
                    "let its bootstrap or recovery end first",
                )
        return attempt

    def publish(
        self,
        name: str,
        new: NewCut,
        *,
        catalog: Connection,
        catalog_name: str,
        pointers: Sequence[Pointer],
        still: Mapping[Place, str | None] = _NOTHING,
        halted: bool = False,
    ) -> CutRecord:
        """Move every pointer, rename tables and record the cut in one transaction; publishing again returns the cut.

        `still` is what the catalog must show of those that do not move. Where the catalog is another database, its
        transaction commits just before ours; what a crash between them leaves, `adopt_published` heals.
        Raises LakeError: "publish-conflict", "catalog-unreachable"; LedgerError: "ledger-conflict" (an older attempt,
        or a table changed its state meanwhile), "pipeline-halted", "ledger-unreachable" (the outcome is unknown: ask
        again).
        """
        with self.transaction(lock=name) as transaction:
            if published := newest_cut(transaction, name, attempt=new.attempt):
                return published
            lock_active(transaction, name, halted=halted)
            _advance(transaction, name, new.lsn, new.tables)
            _rename(transaction, name, new.renames)
            cut = _record(transaction, name, new)
            move_pointers(
                transaction, self.connection, catalog, catalog_name, pointers, still=still, renames=new.renames
            )
        return cut

    def adopt_published(self, name: str, new: NewCut) -> CutRecord:
        """Believe the lake when it says that this attempt was published; merges under way can publish no more.

        Tables keep the states that need a person. Raises LedgerError("ledger-conflict") when its position is not even staged.
        """
        with self.transaction(lock=name) as transaction:
            if published := newest_cut(transaction, name, attempt=new.attempt):
                return published
            transaction.change("merges/begin_merge", name=name, attempt=new.attempt)
            tables = recordset(new.tables)
            transaction.change("merges/adopt_tables", name=name, lsn=new.lsn, tables=tables)
            transaction.change("merges/switch_tables", name=name, lsn=new.lsn, moved=True, tables=tables)
            transaction.change("merges/rename_targets", name=name, renames=recordset(_of_tables(new.renames)))
            return _record(transaction, name, new)

    def published(self, name: str, attempt: str) -> CutRecord | None:
        """Return the cut of an attempt, None where it was not published."""
        return newest_cut(self, name, attempt=attempt)

    def last_cut(self, name: str) -> CutRecord | None:
        """Return the newest cut."""
        return newest_cut(self, name)

    def table_work(self, name: str, *, attempt: str | None = None, since: datetime | None = None) -> list[TableWork]:
        """Return what the cut of this attempt, or those since a time, did to the tables that moved, the slowest first."""
        return self.records(TableWork, "merges/table_work", name=name, attempt=attempt, since=since)

    def cuts(self, name: str, *, limit: int = 20) -> list[CutRecord]:
        """Return the newest cuts, newest first."""
        return self.records(CutRecord, "merges/cuts", name=name, attempt=None, lsn=None, limit=limit)


class Barriers(Part):
    """Record barriers: places of the WAL where a window must end and a cut must lie, so that the lake can be read exactly there.

    Capture ends its window at the next barrier and merge makes a cut at it, each in its ordinary run: whoever wants a cut at
    a place sets a barrier and waits. The cut forgets it, so a barrier whose maker died costs one cut and nothing more.
    """

    def add(self, name: str, lsn: Lsn, *, reason: str) -> bool:
        """Set a barrier; return False where the pipeline stands beyond it, or a window that is under way ends beyond it.

        Raises LedgerError("pipeline-halted", "not-bootstrapped").
        """
        with self.transaction() as transaction:
            lock_active(transaction, name)
            return transaction.change("merges/add_mark", name=name, lsn=lsn, reason=reason) == 1

    def all(self, name: str) -> dict[Lsn, str]:
        """Return what the barriers of the present era that no cut has reached are for, in order of their places."""
        return dict(self.rows("merges/marks", name=name))

    def remove(self, name: str, lsn: Lsn) -> None:
        """Forget a barrier, if it is still there."""
        self.change("merges/remove_mark", name=name, lsn=lsn)

    def reached(self, name: str, lsn: Lsn) -> Reached:
        """Look whether there is a cut exactly at this position; raises LedgerError("not-bootstrapped")."""
        with self.transaction(frozen=True) as transaction:
            position = find(transaction, name).position
            ((reachable,),) = transaction.rows("merges/mark_reachable", name=name, lsn=lsn)
            return Reached(position, bool(reachable), newest_cut(transaction, name, lsn=lsn))


def _record(transaction: Transaction, name: str, new: NewCut) -> CutRecord:
    counted = recordset({"oid": table.oid, "counts": table.counts} for table in new.tables if table.counts)
    found = {"rows": new.rows, "counted": counted, "cuts_snapshot_id": new.cuts_snapshot_id}
    transaction.change("merges/add_cut", name=name, attempt=new.attempt, lsn=new.lsn, **found)
    done = recordset({"oid": table.oid, **table.done} for table in new.tables if table.done)
    transaction.change("merges/add_table_cuts", name=name, attempt=new.attempt, tables=done)
    transaction.change("merges/forget_marks", name=name, lsn=new.lsn)
    cut = newest_cut(transaction, name, attempt=new.attempt)
    if cut is None:
        raise LedgerError(
            "ledger-conflict",
            f"expected attempt {new.attempt} to be the newest merge of {name} and {new.lsn} to be staged, but a newer merge "
            "has begun or the position is not reached; this one changed nothing: leave it",
        )
    return cut


def _advance(transaction: Transaction, name: str, lsn: Lsn, tables: Sequence[PublishedTable]) -> None:
    there, new = ([table for table in tables if (table.load is not None) is loaded] for loaded in (False, True))
    done = transaction.rows("merges/publish_tables", name=name, lsn=lsn, tables=recordset(there))
    done += transaction.rows("merges/switch_tables", name=name, lsn=lsn, moved=False, tables=recordset(new))
    if left := sorted({table.oid for table in tables} - {oid for (oid,) in done}):
        raise LedgerError(
            "ledger-conflict",
            f"expected the tables of {name} and their rebuilds as they were when this merge was planned, but {left} "
            "were paused, copied again or published meanwhile; nothing was published: merge again",
        )


def _rename(transaction: Transaction, name: str, renames: Sequence[Rename]) -> None:
    ours = _of_tables(renames)
    if ours and transaction.change("merges/rename_targets", name=name, renames=recordset(ours)) != len(ours):
        raise LedgerError(
            "ledger-conflict",
            f"expected the tables of {name} under the lake's names that this merge was planned with, but some have others "
            "by now; nothing was published: merge again",
        )
    if renames:
        transaction.change("merges/spare_renamed", name=name)


def _of_tables(renames: Sequence[Rename]) -> list[Rename]:
    return [each for each in renames if each.kind == "table"]
