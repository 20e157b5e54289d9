"""What the page of one table shows of the ledger: its facts, its cuts over time, what comparisons found, what was fetched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from penstock.conditions import Remedy
from penstock.ledger.json_codec import column_from_json
from penstock.ledger.records import Row, TaskRef
from penstock.ledger.session import Transaction
from penstock.ledger.table_records import LoadState
from penstock.ledger.verifications import Outcome
from penstock.lsn import Lsn
from penstock.shapes.mirror_column import MirrorColumn

SHOWN = 20


@dataclass(frozen=True)
class TablePanel(Row):
    """Hold one table; `changes` and `changed_at` cover the newest windows only, `rows` and `bytes` are its size in the lake.

    All its rows were seen to equal the source's at `verified_through` or later; `differs` says that some do not.
    `state` is the ledger's, or `waiting` for one that joined and has no copy yet, `leaving` for one that left.
    `conflicts` are changes since its copy that met other rows than they should, by kind; `suspected` says that no
    comparison has found all rows equal since. `misfits` are values that did not fit.
    """

    oid: int
    name: str
    target: str
    state: str
    complete_through: Lsn | None
    changed_at: datetime | None
    changes: int | None
    rows: int | None
    bytes: int | None
    paused_slug: str | None
    paused_reason: str | None
    remedy: Remedy | None
    verified_through: Lsn | None
    verified_at: datetime | None
    differs: bool
    conflicts: dict[str, int]
    misfits: int
    suspected: bool
    paused_by: TaskRef | None


@dataclass(frozen=True)
class TableFactsPanel(Row):
    """Hold what only the page of one table shows.

    The cut that moved it last was at `moved_at`. `paused_as_of` is the source's time through which a table that stays behind the
    cut is complete.
    """

    identity: str
    columns: tuple[MirrorColumn, ...]
    files: int | None
    paused_at: datetime | None
    moved_at: datetime | None
    copied_rows: int | None
    copied_bytes: int | None
    copied_lsn: Lsn | None
    copy_started_at: datetime | None
    copy_finished_at: datetime | None
    paused_as_of: datetime | None

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        return cls(**{**row, "columns": tuple(map(column_from_json, row["columns"]))})


@dataclass(frozen=True)
class TableCutPanel(Row):
    """Hold what a cut did to the table; `seconds` is its part of the merge, `rows`, `files` and `bytes` are the table's after it."""

    lsn: Lsn
    published_at: datetime
    inserts: int
    updates: int
    deletes: int
    truncates: int
    rows_deleted: int
    rows_written: int
    seconds: float
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True)
class TableStep(Row):
    """Hold what the cuts of one step of time did to the table, and its size after the last of them."""

    time: float
    inserts: int
    updates: int
    deletes: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class FindingPanel(Row):
    """Hold what one comparison found of the table, or of one share of its keys; share 1 of 1 is all rows."""

    lsn: Lsn | None
    verified_at: datetime
    share: int
    shares: int
    outcome: Outcome
    reason: str | None
    source_rows: int
    lake_rows: int
    missing: int
    extra: int
    different: int


@dataclass(frozen=True)
class FetchPanel(Row):
    """Hold columns whose values, or partitions whose rows, are copied by themselves; a column that is gone by now is shown by its number."""

    columns: list[str]
    partitions: list[str]
    state: LoadState
    rows: int
    bytes: int
    lsn: Lsn
    started_at: datetime
    landed_at: datetime | None


class OneTable:
    """Read one table's panels inside a transaction."""

    def __init__(self, transaction: Transaction, name: str, oid: int) -> None:
        self._transaction = transaction
        self._table = {"name": name, "oid": oid}

    def facts(self) -> TableFactsPanel | None:
        """Return the table; None for one that the pipeline does not have."""
        return next(iter(self._transaction.records(TableFactsPanel, "table_page/facts", **self._table)), None)

    def cuts(self) -> list[TableCutPanel]:
        """Return the newest cuts that moved it, newest first."""
        return self._transaction.records(TableCutPanel, "table_page/cuts", limit=SHOWN, **self._table)

    def findings(self) -> list[FindingPanel]:
        """Return what the newest comparisons found, newest first."""
        return self._transaction.records(FindingPanel, "table_page/findings", limit=SHOWN, **self._table)

    def fetches(self) -> list[FetchPanel]:
        """Return the newest fetches of columns, newest first."""
        return self._transaction.records(FetchPanel, "table_page/fetches", limit=SHOWN, **self._table)

    def series(self, *, since: datetime, step: timedelta) -> list[TableStep]:
        """Return what cuts did to it since then, in steps."""
        seconds = step.total_seconds()
        return self._transaction.records(TableStep, "table_page/series", since=since, step=seconds, **self._table)
