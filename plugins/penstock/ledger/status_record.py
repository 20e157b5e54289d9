"""What the ledger knows of a pipeline as a whole, for whoever asks how it is."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.ledger.records import (
    CutRecord,
    EventRecord,
    GapRecord,
    PipelineRecord,
    WindowRecord,
)
from penstock.ledger.table_records import RebuildRecord, TableRecord


@dataclass(frozen=True)
class StatusRecord:
    """Hold one pipeline's state, all read at one moment; the unmerged windows end after the last cut."""

    pipeline: PipelineRecord
    windows: dict[str, int]
    newest_window: WindowRecord | None
    unmerged_windows: int
    unmerged_rows: int
    unmerged_bytes: int
    tables: dict[str, int]
    paused: tuple[TableRecord, ...]
    waiting: tuple[TableRecord, ...]
    last_cut: CutRecord | None
    gaps: tuple[GapRecord, ...]
    events: tuple[EventRecord, ...]
    rebuilds: tuple[RebuildRecord, ...] = ()
