"""What happened and how it stands: events, the status of a pipeline, and forgetting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from penstock.ledger.pipelines import find, gaps, lock
from penstock.ledger.records import (
    CutRecord,
    EventRecord,
    Level,
    StatusRecord,
    TableRecord,
    WindowRecord,
)
from penstock.ledger.session import Sessions
from penstock.ledger.windows import windows
from penstock.lsn import Lsn

_RECENT = 10


class Journal(Sessions):
    """Record what happens, and tell it."""

    def event(
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
        facts = {"slug": slug, "level": level, "table_oid": table_oid, "message": message}
        with self.transaction() as transaction:
            transaction.change("add_event", name=name, details=Jsonb(details or {}), **facts)

    def events(self, name: str, *, limit: int = 20) -> list[EventRecord]:
        """Return the newest events, newest first."""
        with self.transaction() as transaction:
            return transaction.records(EventRecord, "events", name=name, limit=limit)

    def status(self, name: str) -> StatusRecord:
        """Return everything that a person wants to know at a glance; raises LedgerError("not-bootstrapped")."""
        with self.transaction(frozen=True) as transaction:
            pipeline = find(transaction, name)
            ((counts, unmerged, rows, size),) = transaction.rows("window_totals", name=name)
            ((tables,),) = transaction.rows("tables_by_state", name=name)
            newest: list[WindowRecord] = []
            if pipeline.position:
                last = Lsn(pipeline.position - 1)
                newest = windows(transaction, name, after=last, states=["staged", "confirmed"])
            cuts = transaction.records(CutRecord, "cuts", name=name, attempt=None, limit=1)
            return StatusRecord(
                pipeline=pipeline,
                windows=counts,
                newest_window=newest[0] if newest else None,
                unmerged_windows=unmerged,
                unmerged_rows=rows,
                unmerged_bytes=size,
                tables=tables,
                paused=tuple(transaction.records(TableRecord, "tables", name=name, oid=None, states=["paused"])),
                last_cut=cuts[0] if cuts else None,
                gaps=tuple(gaps(transaction, name)),
                events=tuple(transaction.records(EventRecord, "events", name=name, limit=_RECENT)),
            )

    def trim(self, name: str, *, older_than: timedelta) -> list[WindowRecord]:
        """Forget what is old and needed no more; return the windows, whose files may be deleted now.

        A window stays as long as any table has not merged it, and while it is not confirmed; the last cut stays. Those
        of past eras are needed no more.
        """
        before = datetime.now(UTC) - older_than
        with self.transaction() as transaction:
            lock(transaction, name)
            ((through,),) = transaction.rows("trim_through", name=name)
            merged = [] if through is None else windows(transaction, name, through=through, states=["confirmed"])
            old = [window for window in merged if window.confirmed_at and window.confirmed_at < before]
            past = windows(transaction, name, past=True)
            old = [*(window for window in past if window.staged_at and window.staged_at < before), *old]
            eras, from_lsns = [window.era for window in old], [window.from_lsn for window in old]
            transaction.change("trim_windows", name=name, eras=eras, from_lsns=from_lsns)
            for statement in ("trim_events", "trim_slot_samples", "trim_alarms", "trim_cuts"):
                transaction.change(statement, name=name, before=before)
            transaction.change("trim_source_clock", name=name)
            return old
