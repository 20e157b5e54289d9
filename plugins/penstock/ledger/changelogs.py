"""What the changelogs rest on: when the source's transactions committed, which of them are landed, what is filled.

An interval is one of commit time. It is complete when capture has passed a position at which the source's clock was
past the interval's end; and it can be filled as long as its windows are there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from penstock.config.connections import Connection
from penstock.errors import LakeError
from penstock.jobs.plans import ChangelogPlan, TableResult
from penstock.ledger.iceberg_pointers import move_pointers
from penstock.ledger.pipelines import find, gaps
from penstock.ledger.records import GapRecord, PipelineState, Row, SkippedRecord, WindowRecord
from penstock.ledger.session import Part, Transaction, recordset
from penstock.ledger.table_records import TableRecord
from penstock.ledger.tables import tables as tables_of
from penstock.ledger.windows import windows
from penstock.lsn import Lsn
from penstock.shapes.timeline import KnownRelation


@dataclass(frozen=True)
class HistoryRecord(Row):
    """Say which history of a pipeline is landed, and how far.

    All that committed before `captured_through` and since `known_from` is in windows, the gaps excepted; both are
    None where the source's clock was not recorded. `from_the_start` says that the era `known_era` has lost no window.
    """

    era: int
    position: Lsn | None
    state: PipelineState
    captured_through: datetime | None
    known_from: datetime | None
    from_the_start: bool
    known_era: int
    gaps: tuple[GapRecord, ...] = ()


@dataclass(frozen=True)
class FillRecord(Row):
    """Hold one interval of commit time that the changelogs hold as it was through `through_lsn` of `era`.

    `late_rows` counts changes of the interval that came later, and are not in the changelogs.
    """

    pipeline: str
    from_time: datetime
    upto_time: datetime
    era: int
    through_lsn: Lsn
    attempt: str
    rows: int
    tables: list[dict[str, Any]]
    filled_at: datetime
    late_rows: int


@dataclass(frozen=True)
class IntervalWork:
    """Hold what filling an interval needs, all read at one moment."""

    history: HistoryRecord
    windows: tuple[WindowRecord, ...]
    tables: tuple[TableRecord, ...]
    relations: tuple[KnownRelation, ...]
    missing: tuple[SkippedRecord, ...] = ()


class Changelogs(Part):
    """Record the source's clock, and the intervals that were filled."""

    def note_source_clock(self, name: str, *, at: datetime, lsn: Lsn, looked_at: datetime | None = None) -> None:
        """Note that everything which had committed at this time of the source's clock lies at or before `lsn`.

        `looked_at` is the server's own clock, where that is another: a standby knows the times of commits only.
        """
        note = {"name": name, "lsn": lsn, "at": at, "looked_at": looked_at or at, "begins": False}
        self.change("changelogs/note_source_clock", **note)

    def history(self, name: str) -> HistoryRecord:
        """Return which history is landed; raises LedgerError("not-bootstrapped")."""
        with self.transaction(frozen=True) as transaction:
            return _history(transaction, name)

    def interval_work(self, name: str, *, from_time: datetime, upto_time: datetime) -> IntervalWork:
        """Return the windows that may hold changes committed in `[from_time, upto_time)`, and what they speak of."""
        between = {"from_time": from_time, "upto_time": upto_time}
        with self.transaction(frozen=True) as transaction:
            return IntervalWork(
                history=_history(transaction, name),
                windows=tuple(
                    windows(
                        transaction, name, committed=(from_time, upto_time), states=["staged", "confirmed"], past=None
                    )
                ),
                tables=tuple(tables_of(transaction, name)),
                relations=tuple(transaction.records(KnownRelation, "shapes/relations", name=name)),
                missing=tuple(transaction.records(SkippedRecord, "windows/skipped", name=name, **between)),
            )

    def fill(
        self,
        name: str,
        plan: ChangelogPlan,
        done: Sequence[TableResult],
        *,
        catalog: Connection,
        called: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None,
    ) -> FillRecord:
        """Move the pointers of the changelogs that were filled and note the interval, in one transaction where the catalog is in this database.

        `called` gives the name of a table's changelog, to which these are held. In two databases the catalog's commits first; killed in between, the interval is filled again, to no other end.
        Raises LakeError: "publish-conflict", "catalog-unreachable"; LedgerError("ledger-unreachable").
        """
        between = {"from_time": plan.from_time, "upto_time": plan.upto_time}
        filled = [table for table in done if not table.paused_slug]
        with self.transaction(lock=name) as transaction:
            names = {called(table.target) for table in tables_of(transaction, name)} if called else set()
            if called and (renamed := [".".join(table.target) for table in filled if table.target not in names]):
                raise LakeError(
                    "publish-conflict",
                    f"expected changelogs under the names that they had when this fill was planned, but {', '.join(renamed)} have "
                    "others by now, as their tables do; nothing was published: fill the interval again",
                )
            transaction.change("changelogs/forget_fills", name=name, **between)
            tables = [
                {"target": each.target, "rows": each.counts.get("rows_written", 0), "snapshot_id": each.snapshot_id}
                for each in filled
            ]
            transaction.change(
                "changelogs/add_fill",
                name=name,
                era=plan.era,
                through_lsn=Lsn(plan.through_lsn),
                attempt=plan.attempt,
                rows=sum(each["rows"] for each in tables),
                tables=recordset(tables),
                **between,
            )
            pointers = [table.pointer for table in filled if table.pointer]
            move_pointers(transaction, self.connection, catalog, plan.catalog, pointers)
            (noted,) = transaction.records(FillRecord, "changelogs/fills", name=name, limit=1, **between)
        return noted

    def note_late(self, name: str, fill: FillRecord, *, rows: int, message: str) -> None:
        """Note that changes of a filled interval came later, with an event that says so."""
        place = {"from_time": fill.from_time, "upto_time": fill.upto_time, "attempt": fill.attempt}
        with self.transaction() as transaction:
            transaction.change("changelogs/note_late", name=name, rows=rows, **place)
            transaction.note(name, "changes-late", message, level="warning")

    def fills(
        self, name: str, *, since: datetime | None = None, before: datetime | None = None, limit: int | None = 100
    ) -> list[FillRecord]:
        """Return the filled intervals that overlap a time, the newest first; all of them with `limit` None."""
        return self.records(FillRecord, "changelogs/fills", name=name, from_time=since, upto_time=before, limit=limit)


def _history(transaction: Transaction, name: str) -> HistoryRecord:
    find(transaction, name)
    (known,) = transaction.records(HistoryRecord, "changelogs/history", name=name)
    return replace(known, gaps=tuple(gaps(transaction, name)))
