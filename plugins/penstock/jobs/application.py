"""What Spark's applications on lake tables have in common: the frame of their plans, and what each says of one table."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.codec import JsonForm
from penstock.jobs.pointers import Pointer


@dataclass(frozen=True, slots=True, kw_only=True)
class LakePlan(JsonForm):
    """Order one attempt at the tables of a pipeline, so many of them at once.

    `landing_uri` and `landing_options` are those of the pipeline file, without secrets: options name the variables that hold
    them. `task_memory` are the bytes that one table's task may take before it spills. `table_properties` are those of new tables.
    """

    pipeline: str
    attempt: str
    catalog: str
    era: int = 1
    parallel_tables: int = 4
    table_properties: dict[str, str] = field(default_factory=dict)
    landing_uri: str = ""
    landing_options: dict[str, str] = field(default_factory=dict)
    task_memory: int = 512 << 20


@dataclass(frozen=True, slots=True)
class TableSize:
    """Measure a table of the lake: its live rows, its data files and their bytes."""

    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TableResult:
    """Report one table that was merged, or one changelog: its pointer, or why it stays as it was.

    Of a merge `counts` has: inserts, updates, deletes, truncates (events read), rows_deleted, rows_written,
    update_missing, delete_missing, insert_existing, misfits, skipped; of a changelog rows_written and rows_deleted. `failure`
    names the class of an error without a kind that paused it. `shows` is the metadata file of a table that does not move, where it
    was looked at; `size` that of one that moves.
    """

    oid: int
    target: tuple[str, ...]
    pointer: Pointer | None
    snapshot_id: int | None
    counts: dict[str, int]
    seconds: float
    paused_slug: str | None = None
    paused_reason: str | None = None
    failure: str | None = None
    shows: str | None = None
    size: TableSize | None = None
