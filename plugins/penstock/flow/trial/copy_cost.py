"""What a copy of each table would cost: how large the source's is, and what the last copy took, where the ledger knows one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from penstock.errors import ConfigError, LedgerError
from penstock.flow.context import Context
from penstock.ledger.table_records import LoadRecord
from penstock.shapes.source_table import SourceTable


@dataclass(frozen=True, slots=True)
class CopyCost:
    """Hold the size of a table at the source in bytes, and rows, seconds and end of its last copy; None is unknown.

    The seconds are those from the snapshot until the table was copied, with the tables that were copied with it.
    """

    bytes: int | None = None
    rows: int | None = None
    seconds: float | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """Hold the cost by table, which tables are paused now, and what is not known."""

    by_table: Mapping[str, CopyCost]
    paused: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def costs(ctx: Context, tables: Iterable[SourceTable]) -> Costs:
    """Ask source and ledger; a ledger that cannot be asked leaves figures out."""
    sizes = {table.qualified: CopyCost(bytes=table.bytes) for table in tables}
    try:
        records = [record for record in ctx.ledger.tables.all(ctx.name) if record.state != "dropped"]
        last = _last(ctx.ledger.loads.copies(ctx.name))
    except (ConfigError, LedgerError) as error:
        return Costs(sizes, notes=(f"the ledger did not say what earlier copies took: {error.message}",))
    known = {record.qualified: last[record.oid] for record in records if record.oid in last}
    found = {name: _cost(sizes.get(name), known.get(name)) for name in sizes.keys() | known.keys()}
    return Costs(found, frozenset(record.qualified for record in records if record.state == "paused"))


def _last(copies: Iterable[LoadRecord]) -> dict[int, LoadRecord]:
    done = [copy for copy in copies if copy.copied_at is not None]
    return {copy.oid: copy for copy in sorted(done, key=lambda copy: copy.copied_at or copy.started_at)}


def _cost(size: CopyCost | None, copy: LoadRecord | None) -> CopyCost:
    heap = size.bytes if size else None
    if copy is None or copy.copied_at is None or copy.copy_started_at is None:
        return CopyCost(bytes=heap)
    return CopyCost(heap, copy.rows, (copy.copied_at - copy.copy_started_at).total_seconds(), copy.copied_at)
