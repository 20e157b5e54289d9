"""What happened and how it stands: events, the status of a pipeline, and forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.ledger.loads import BUILDS, OPEN, loads
from penstock.ledger.pipelines import find, gaps
from penstock.ledger.records import (
    CutRecord,
    EventRecord,
    GapRecord,
    Level,
    PipelineRecord,
    UnannouncedRecord,
    WindowRecord,
)
from penstock.ledger.session import Part
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.ledger.tables import tables as tables_of
from penstock.ledger.windows import windows
from penstock.lsn import Lsn

_RECENT = 10


@dataclass(frozen=True)
class StatusRecord:
    """Hold one pipeline's state, all read at one moment; the unmerged windows end after the last cut."""

    pipeline: PipelineRecord
    windows: dict[str, int]
    newest_window: WindowRecord | None
    unmerged_windows: int
    unmerged_rows: int
    tables: dict[str, int]
    paused: tuple[TableRecord, ...]
    waiting: tuple[TableRecord, ...]
    last_cut: CutRecord | None
    gaps: tuple[GapRecord, ...]
    events: tuple[EventRecord, ...]
    rebuilds: tuple[LoadRecord, ...] = ()


class Events(Part):
    """Record what happens, and return it."""

    def add(
        self,
        name: str,
        *,
        slug: str,
        message: str,
        level: Level = "info",
        table_oid: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        """Note something that happened, under its runbook's name."""
        with self.transaction() as transaction:
            transaction.note(name, slug, message, level=level, oid=table_oid, details=details)

    def add_on_change(
        self,
        name: str,
        *,
        slug: str,
        message: str,
        level: Level = "info",
        table_oid: int | None = None,
        first: bool = True,
    ) -> bool:
        """Note how something stands unless that was the last thing noted under this slug and table; return whether it was new.

        Without `first` only what changes an earlier note is noted.
        """
        facts = {"slug": slug, "level": level, "table_oid": table_oid, "message": message, "first": first}
        with self.transaction() as transaction:
            return bool(transaction.change("events/add_event_on_change", name=name, details="{}", **facts))

    def all(self, name: str, *, limit: int = 20) -> list[EventRecord]:
        """Return the newest events, newest first."""
        with self.transaction() as transaction:
            return transaction.records(EventRecord, "events/events", name=name, limit=limit)

    def unannounced(self, name: str, slug: str) -> list[UnannouncedRecord]:
        """Return the events of a slug that nobody was told of, the oldest first."""
        with self.transaction() as transaction:
            return transaction.records(UnannouncedRecord, "events/unannounced", name=name, slug=slug)

    def note_announced(self, name: str, numbers: Sequence[int]) -> None:
        """Note that those who asked for it were told of these events."""
        with self.transaction() as transaction:
            transaction.change("events/note_announced", name=name, numbers=list(numbers))

    def status(self, name: str) -> StatusRecord:
        """Return everything that a person wants to know at a glance; raises LedgerError("not-bootstrapped")."""
        with self.transaction(frozen=True) as transaction:
            pipeline = find(transaction, name)
            ((counts, unmerged, rows),) = transaction.rows("events/window_totals", name=name)
            ((tables,),) = transaction.rows("events/tables_by_state", name=name)
            newest: list[WindowRecord] = []
            if pipeline.position:
                last = Lsn(pipeline.position - 1)
                newest = windows(transaction, name, after=last, states=["staged", "confirmed"])
            cuts = transaction.records(CutRecord, "merges/cuts", name=name, attempt=None, lsn=None, limit=1)
            return StatusRecord(
                pipeline=pipeline,
                windows=counts,
                newest_window=newest[0] if newest else None,
                unmerged_windows=unmerged,
                unmerged_rows=rows,
                tables=tables,
                paused=tuple(tables_of(transaction, name, states=["paused"])),
                waiting=tuple(table for table in tables_of(transaction, name, states=["new"]) if table.waits),
                last_cut=cuts[0] if cuts else None,
                gaps=tuple(gaps(transaction, name)),
                events=tuple(transaction.records(EventRecord, "events/events", name=name, limit=_RECENT)),
                rebuilds=tuple(loads(transaction, name, BUILDS, states=OPEN)),
            )
