"""Which rows of dropped partitions go in the next cut: at the very place of the stream after which their bounds may have new rows."""

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.errors import Trouble
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.ledger.merge_queue import MergeQueue
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.partition_bounds import data


def bounds(table: TableRecord, upto: Lsn) -> tuple[tuple[tuple[Any, ...], ...], ...]:
    """Return the bounds of the partitions whose rows go at this cut, by the lake's names of columns."""
    gone = (each for each in table.accepted.leaving if each.lsn == upto)
    return by_name(table, (data(each.bound) for each in gone))


def by_name(table: TableRecord, bounds: Iterable[Sequence[Sequence[Any]]]) -> tuple[tuple[tuple[Any, ...], ...], ...]:
    """Return bounds by the lake's names of columns."""
    names = {column.attnum: column.name for column in table.columns}
    return tuple(tuple((names[attnum], *rest) for attnum, *rest in bound) for bound in bounds)


def pause_passed(ctx: Context, queue: MergeQueue) -> bool:
    """Pause the tables that were in no cut at the place where rows of theirs go; return whether there were any."""
    passed = [table for table in queue.tables if table.state == "ready" and _passed(table, queue.upto)]
    for table in passed:
        reason = "a partition was dropped, and the cut at which its rows go from the lake was made without this table"
        table_status.stop(ctx, table, Trouble("schema-change", reason, "copy"))
    return bool(passed)


def _passed(table: TableRecord, upto: Lsn) -> bool:
    through = table.complete_through or Lsn(0)
    return any(each.lsn is not None and through < each.lsn < upto for each in table.accepted.leaving)
