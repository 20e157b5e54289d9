"""Barriers: places of the WAL where a window must end and a cut must lie, so that the lake can be read exactly there.

Capture ends its window at the next barrier and merge makes a cut at it, each in its ordinary run: whoever wants a cut at
a place sets a barrier and waits. The cut forgets it, so a barrier whose maker died costs one cut and nothing more.
"""

from dataclasses import dataclass
from datetime import datetime

from penstock.ledger.pipelines import find, lock_active
from penstock.ledger.records import CutRecord, Row
from penstock.ledger.session import Part
from penstock.lsn import Lsn


@dataclass(frozen=True)
class Barrier(Row):
    """Hold one barrier, and in one word what it is for."""

    lsn: Lsn
    reason: str
    made_at: datetime


@dataclass(frozen=True)
class Reached(Row):
    """Say how far a pipeline is on its way to a barrier.

    `cut` is the cut at it; where `reachable` is false a window has passed over the place, and no cut can lie there.
    """

    position: Lsn | None
    reachable: bool
    cut: CutRecord | None


class Barriers(Part):
    """Record barriers."""

    def add(self, name: str, lsn: Lsn, *, reason: str) -> bool:
        """Set a barrier; return False where the pipeline stands beyond it, or a window that is under way ends beyond it.

        Raises LedgerError("pipeline-halted", "not-bootstrapped").
        """
        with self.transaction() as transaction:
            lock_active(transaction, name)
            return transaction.change("barriers/add_mark", name=name, lsn=lsn, reason=reason) == 1

    def all(self, name: str) -> list[Barrier]:
        """Return the barriers of the present era that no cut has reached, in order."""
        return self.records(Barrier, "barriers/marks", name=name)

    def remove(self, name: str, lsn: Lsn) -> None:
        """Forget a barrier, if it is still there."""
        self.change("barriers/remove_mark", name=name, lsn=lsn)

    def reached(self, name: str, lsn: Lsn) -> Reached:
        """Look whether there is a cut exactly at this position; raises LedgerError("not-bootstrapped")."""
        with self.transaction(frozen=True) as transaction:
            position = find(transaction, name).position
            ((reachable,),) = transaction.rows("barriers/mark_reachable", name=name, lsn=lsn)
            cuts = transaction.records(CutRecord, "merges/cuts", name=name, attempt=None, lsn=lsn, limit=1)
        return Reached(position, bool(reachable), next(iter(cuts), None))
