"""What the page of one table shows, as plain values: the same models are the page's HTML and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.page.advice import Advice
from penstock.page.models import Event, Pipeline, Rebuild, SchemaChange, Table

Identity = Literal["key", "whole rows", "nothing"]
"""How a table's changes find their rows; by nothing it takes inserts only."""


@dataclass(frozen=True)
class Column:
    """Show one column: its type at the source beside its type in the lake.

    One that is `dropped` is only in the lake, and has no type at the source. `later` says that it came when the table had rows:
    these show a default. `dimensions` are those with which an array of the lake is declared at the source.
    """

    number: int
    name: str
    source_type: str | None
    lake_type: str
    exact_text: bool
    key: bool
    dropped: bool
    later: bool
    dimensions: int = 0


@dataclass(frozen=True)
class Copy:
    """Show the table's last copy, or the one under way: `seconds` is None until it has ended."""

    rows: int
    bytes: int
    lsn: str
    started_at: datetime
    finished_at: datetime | None
    seconds: float | None


@dataclass(frozen=True)
class TableCut:
    """Show what a cut did to the table; `seconds` is its part of the merge, `rows` and `bytes` are the table's after it."""

    lsn: str
    published_at: datetime
    inserts: int
    updates: int
    deletes: int
    truncates: int
    rows_written: int
    rows_deleted: int
    seconds: float
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Finding:
    """Show what a comparison found; share 1 of 1 is all rows."""

    lsn: str | None
    verified_at: datetime
    share: int
    shares: int
    outcome: str
    reason: str | None
    source_rows: int
    lake_rows: int
    missing: int
    extra: int
    different: int


@dataclass(frozen=True)
class Fetch:
    """Show columns whose values, or partitions whose rows, were copied by themselves."""

    columns: list[str]
    partitions: list[str]
    state: str
    rows: int
    bytes: int
    lsn: str
    started_at: datetime
    landed_at: datetime | None


@dataclass(frozen=True)
class TablePage:
    """Hold everything of one table but its charts.

    The table is complete as of `as_of`, the source's time; `key` are the columns by which its changes find their rows, where
    `identity` says so. `snapshots` and `delete_files` are of the last maintenance. `compared` says how far it is verified, or what the
    newest comparison came to where not all rows are.
    """

    at: datetime
    pipeline: Pipeline
    table: Table
    identity: Identity
    key: list[str]
    as_of: datetime | None
    freshness_seconds: float | None
    paused_at: datetime | None
    moved_at: datetime | None
    compared_at: datetime | None
    compared: str
    files: int | None
    snapshots: int | None
    delete_files: int | None
    advice: list[Advice]
    columns: list[Column]
    copy: Copy | None
    cuts: list[TableCut]
    findings: list[Finding]
    fetches: list[Fetch]
    rebuilds: list[Rebuild]
    schema_changes: list[SchemaChange]
    events: list[Event]


@dataclass(frozen=True)
class TableSeries:
    """Hold a table's charts as columns; times are seconds since 1970, steps without a cut that moved it are left out."""

    hours: int
    step_seconds: float
    time: list[float]
    inserts: list[int]
    updates: list[int]
    deletes: list[int]
    rows: list[int]
    bytes: list[int]
