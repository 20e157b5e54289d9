"""What maintenance did, which tables it found set aside, and what it forgets because it is old.

Files go only after the ledger has forgotten them: killed between the two, the next run finds files that nothing
knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from penstock.jobs.maintenance_plan import TableFolder, TableReport
from penstock.ledger.loads import COPIES, loads
from penstock.ledger.records import Row
from penstock.ledger.session import Part, recordset
from penstock.ledger.table_records import LoadRecord
from penstock.lsn import Lsn


@dataclass(frozen=True)
class MaintenanceRecord(Row):
    """Hold one run of maintenance; it has a `report` or, where a condition ended it, an `error`.

    Without an end it is at work, or was killed.
    """

    pipeline: str
    attempt: str
    started_at: datetime
    ended_at: datetime | None
    dry_run: bool
    report: dict[str, Any] | None
    error: str | None = None

    def figures(self, target: str) -> dict[str, int]:
        """Return the figures of a table of the lake after the run, empty where it measured none."""
        tables = self.report["lake"]["tables"] if self.report else ()
        return next((each["after"] or {} for each in tables if ".".join(each["target"]) == target), {})


@dataclass(frozen=True)
class ForgottenWindow(Row):
    """Hold one window that the ledger has just forgotten; `max_xid` is known of the present era's."""

    era: int
    from_lsn: Lsn
    upto_lsn: Lsn
    bytes: int
    max_xid: int | None


@dataclass(frozen=True)
class Forgotten:
    """Say what the ledger has forgotten: windows, and copies as (copy id, table's oid, bytes)."""

    windows: tuple[ForgottenWindow, ...] = ()
    copies: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True)
class Needed:
    """Name what the landing zone must hold, all read at one moment; what is nowhere here belongs to nothing.

    `windows` are ranges and attempts; `copies` are all copies; `fetches` are those that are read; `runs` are attempts whose plan and result are read.
    """

    windows: tuple[tuple[Lsn, Lsn, str], ...]
    copies: tuple[LoadRecord, ...]
    fetches: frozenset[str]
    runs: frozenset[str]


class Maintenance(Part):
    """Record runs of maintenance, and forget."""

    def begin(self, name: str, attempt: str, *, dry_run: bool) -> None:
        """Note that a run has begun."""
        self.change("maintenance/begin_maintenance", name=name, attempt=attempt, dry_run=dry_run)

    def move_compacted(self, name: str, attempt: str, tables: Sequence[tuple[TableReport, int | None]]) -> int:
        """Take over main's snapshots after compaction, each with the one that was expected before; return how many.

        None is taken over once a merge has begun after `attempt`: that merge knows the old ones, which are kept.
        """
        rows = [{"oid": t.oid, "expected": expected, "snapshot_id": t.snapshot_id} for t, expected in tables]
        with self.transaction(lock=name) as transaction:
            return transaction.change("maintenance/move_compacted", name=name, attempt=attempt, tables=recordset(rows))

    def end(self, name: str, attempt: str, report: dict[str, Any], message: str) -> None:
        """Note what a run did, as an event too."""
        with self.transaction() as transaction:
            found = {"report": Jsonb(report), "error": None}
            if transaction.change("maintenance/end_maintenance", name=name, attempt=attempt, **found):
                transaction.note(name, "maintained", message)

    def fail(self, name: str, attempt: str, slug: str) -> None:
        """Note which condition ended a run."""
        self.change("maintenance/end_maintenance", name=name, attempt=attempt, report=None, error=slug)

    def all(self, name: str, *, limit: int = 1) -> list[MaintenanceRecord]:
        """Return the newest runs, newest first."""
        return self.records(MaintenanceRecord, "maintenance/maintenances", name=name, limit=limit)

    def see_old_tables(self, name: str, tables: Sequence[TableFolder]) -> dict[TableFolder, datetime]:
        """Note tables that are set aside, and return all that are known, with since when."""
        with self.transaction() as transaction:
            transaction.change("maintenance/see_old_tables", name=name, tables=recordset(tables))
            known = transaction.rows("maintenance/old_tables", name=name)
            return {TableFolder(namespace, table, folder): seen_at for namespace, table, folder, seen_at in known}

    def forget_old_tables(self, name: str, tables: Sequence[TableFolder]) -> None:
        """Forget tables that are gone with all their files."""
        self.change("maintenance/forget_old_tables", name=name, tables=recordset(tables))

    def trim_history(self, name: str, *, before: datetime, cuts_before: datetime, daily_before: datetime) -> None:
        """Forget events, samples, closed alarms and runs from `before` a time, and cuts that are not read any more.

        The last cut stays; of each UTC day the last one stays until `daily_before`.
        """
        with self.transaction(lock=name) as transaction:
            transaction.change("maintenance/trim_events", name=name, before=before)
            transaction.change("health/trim", name=name, before=before)
            transaction.change("maintenance/trim_cuts", name=name, before=cuts_before, daily_before=daily_before)

    def old_windows(self, name: str, *, before: datetime) -> list[ForgottenWindow]:
        """Return the windows that `forget_landed` would forget now."""
        return self.records(ForgottenWindow, "maintenance/old_windows", name=name, before=before)

    def forget_landed(self, name: str, *, before: datetime) -> Forgotten:
        """Forget the windows and copies that are older than a time and that nothing needs.

        A merge that is due, a copy that is not loaded yet, and a paused table keep what they need, however old. A
        copy is forgotten with the first window that a replay of it would need.
        """
        with self.transaction(lock=name) as transaction:
            old = transaction.records(ForgottenWindow, "maintenance/old_windows", name=name, before=before)
            eras, from_lsns = [window.era for window in old], [window.from_lsn for window in old]
            transaction.change("maintenance/trim_windows", name=name, eras=eras, from_lsns=from_lsns)
            transaction.change("maintenance/trim_source_clock", name=name)
            last = max((window.max_xid or 0 for window in old), default=0)
            copies = transaction.rows("maintenance/forget_useless_copies", name=name, max_xid=last, before=before)
            return Forgotten(tuple(old), tuple((copy_id, oid, size) for copy_id, oid, size in copies))

    def needed_landed(self, name: str) -> Needed:
        """Return what the landing zone must hold."""
        with self.transaction(frozen=True) as transaction:
            rows = transaction.rows("maintenance/needed", name=name)
            return Needed(
                windows=tuple((since, upto, attempt) for kind, attempt, since, upto in rows if kind == "window"),
                copies=tuple(loads(transaction, name, COPIES, kept=True)),
                fetches=frozenset(each for kind, each, *_ in rows if kind == "fetch"),
                runs=frozenset(each for kind, each, *_ in rows if kind == "run"),
            )
