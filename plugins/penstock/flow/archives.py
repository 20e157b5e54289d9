"""Rows that only the lake has, since the source has let go of their partitions: no copy brings them back.

They are protected as long as `lake.on_dropped_partition` is `keep`. Whoever gives them up says so there.
"""

from collections.abc import Mapping, Sequence

from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.shapes.accepted import lost_partitions
from penstock.shapes.reads import values_changed
from penstock.shapes.source_table import SourceTable


def only_in_lake(ctx: Context, record: TableRecord, now: SourceTable | None) -> list[str]:
    """Name the partitions whose rows a copy of a table as it is now would not have, where they are to be kept.

    A partition with another file may have been truncated, unless all were rewritten for the sake of a column.
    """
    if not _keeps(ctx, record) or now is None:
        return []
    accepted = record.accepted
    by_file = now.kind == "p" and not values_changed(record.columns, accepted.shape, now)
    files = {leaf.oid: leaf.file if by_file else None for leaf in now.leaves}
    return list(dict.fromkeys([*(each.name for each in accepted.kept), *lost_partitions(accepted.shape, files)]))


def lost_by(ctx: Context, record: TableRecord | None, rebuild: LoadRecord) -> list[str]:
    """Name the partitions whose rows a rebuilt table does not have, where they are to be kept."""
    if record is None or not _keeps(ctx, record):
        return []
    known = {each.oid for each in rebuild.accepted.kept}
    kept = (each.name for each in record.accepted.kept if each.oid not in known)
    files = dict.fromkeys(rebuild.accepted.shape.leaves, None)
    return list(dict.fromkeys([*kept, *lost_partitions(record.accepted.shape, files)]))


def require_none(ctx: Context, records: Sequence[TableRecord], now: Mapping[int, SourceTable], what: str) -> None:
    """See that a copy loses no row that the lake is to keep; raises LakeError("archive-kept")."""
    for record in records:
        if error := refusal(ctx, record, now.get(record.oid), what):
            raise error


def refusal(ctx: Context, record: TableRecord, now: SourceTable | None, what: str = "a copy") -> LakeError | None:
    """Return why a copy of a table as it is now would lose rows that the lake is to keep, None where it loses none."""
    names = only_in_lake(ctx, record, now)
    if not names:
        return None
    return LakeError(
        "archive-kept",
        f"expected {what} of {record.qualified} to lose no row, but only the lake has those of {', '.join(names)}, which the source "
        f"has dropped, detached or truncated; put the rows that you need into a table of your own, set "
        "lake.on_dropped_partition: follow, and start over",
    )


def _keeps(ctx: Context, record: TableRecord) -> bool:
    shown = record.state == "ready" or record.complete_through is not None
    return shown and ctx.pipeline.lake.on_dropped_partition == "keep"
