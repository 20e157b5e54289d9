"""Transactions of the stream that no window holds, because the source could not decode them.

The window of such a one is staged without it, and the tables that it touched are paused in the same transaction of the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.range import Range

from penstock.errors import Trouble
from penstock.ledger.pipelines import lock_active
from penstock.ledger.records import SkippedRecord, WindowRecord
from penstock.ledger.session import Part, listed
from penstock.ledger.shapes import distrust_shapes
from penstock.ledger.tables import stop
from penstock.ledger.windows import moved, windows
from penstock.lsn import Lsn

_EMPTY = {"rows": 0, "bytes": 0, "max_xid": None, "transactions": 0, "messages": 0}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Describe the transaction of `lsn` that is left out, what it touched and why, as known when the WAL ended at `known_lsn`.

    It committed between the two times `committed`, None where unknown.
    """

    lsn: Lsn
    xid: int | None
    oids: Sequence[int]
    known_lsn: Lsn
    trouble: Trouble
    committed: tuple[datetime | None, datetime | None]


class Skips(Part):
    """Record transactions that were left out."""

    def add(
        self,
        name: str,
        *,
        from_lsn: Lsn,
        attempt: str,
        left_out: LeftOut,
        digest: str,
        seconds: float,
    ) -> WindowRecord:
        """Make the window of one transaction exist without its changes, and stop the tables that it touched.

        Raises LedgerError as `stage_window` does.
        """
        with self.transaction() as transaction:
            known = lock_active(transaction, name)
            staged = transaction.change(
                "windows/stage_window",
                name=name,
                from_lsn=from_lsn,
                attempt=attempt,
                committed=Range(*left_out.committed, "[]"),
                digest=digest,
                seconds=seconds,
                files=listed([]),
                **_EMPTY,
            )
            if not staged:
                raise moved(name, from_lsn, known.position)
            distrust_shapes(transaction, name)  # it may have altered tables, too
            oids = list(left_out.oids)
            facts = {"lsn": left_out.lsn, "xid": left_out.xid, "oids": oids, "known_lsn": left_out.known_lsn}
            transaction.change("skips/add_skipped", name=name, **facts)
            stop(transaction, name, dict.fromkeys(oids, left_out.trouble))
            (window,) = windows(transaction, name, from_lsn=from_lsn)
            return window

    def all(self, name: str) -> list[SkippedRecord]:
        """Return the transactions of the present era that no window has, in order."""
        return self.records(SkippedRecord, "skips/skipped", name=name)
