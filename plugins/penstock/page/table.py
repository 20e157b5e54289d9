"""The page of one table: the ledger's records of it, and what is made of them for a person. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.ledger.page import LastCopy, Shown, TableDetails, TablePanel
from penstock.page.advice import Advice
from penstock.page.pipeline import Pipeline
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.lake_types import STRING, element_type
from penstock.values.pgtype import type_name

Identity = Literal["key", "whole rows", "nothing"]
"""How a table's changes find their rows; by nothing it takes inserts only."""

IDENTITIES: dict[str, Identity] = {"d": "key", "i": "key", "f": "whole rows", "n": "nothing"}


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
class TablePage:
    """Hold everything of one table but its charts.

    The table is complete as of `as_of`, the source's time; `key` are the columns by which its changes find their rows, where
    `identity` says so. `snapshots` and `delete_files` are of the last maintenance. `compared` says how far it is verified, or what the
    newest comparison came to where not all rows are.
    """

    at: datetime
    pipeline: Pipeline
    table: TablePanel
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
    copy: LastCopy | None
    cuts: list[Shown]
    findings: list[Shown]
    fetches: list[Shown]
    rebuilds: list[Shown]
    schema_changes: list[Shown]
    events: list[Shown]


def column(each: MirrorColumn) -> Column:
    """Show a column."""
    return Column(
        number=each.attnum,
        name=each.name,
        source_type=None if each.dropped else type_name(each.type),
        lake_type=each.lake_type,
        exact_text=each.lake_type == STRING,
        key=each.key,
        dropped=each.dropped,
        later=each.missing_text is not None,
        dimensions=each.dimensions if element_type(each.lake_type) else 0,
    )


def compared(table: TablePanel, findings: Sequence[Shown]) -> tuple[datetime | None, str]:
    """Say when and how far the table was compared: through where all rows were equal, else what the newest comparison came to."""
    if table.verified_through is not None:
        return table.verified_at, f"through {table.verified_through}"
    if not findings:
        return None, "by no comparison with the source"
    newest = findings[0]
    share, shares = newest["share"], newest["shares"]
    part = "all rows of the table before" if shares == 1 else f"share {share} of {shares}"
    return newest["verified_at"], f"{newest['outcome']}: {part}; not all of its rows yet"


def complete_as_of(table: TablePanel, facts: TableDetails, pipeline: Pipeline) -> datetime | None:
    """Return the source's time through which the table is complete: that of the cut, or of where it stays behind."""
    return pipeline.as_of if table.state in ("ready", "leaving") else facts.paused_as_of
