"""Where a table stops, and where what is being built of one does: the one place, whatever was found and by whom.

A cut, a window and a look at the publication stop tables in a transaction of the ledger with what they stand for, by the same statement.
"""

from __future__ import annotations

from penstock.errors import Trouble
from penstock.flow.context import Context
from penstock.ledger.table_records import LoadRecord, TableRecord


def stop(ctx: Context, known: TableRecord | LoadRecord, trouble: Trouble) -> None:
    """Pause a table for what its trouble's remedy brings; end a rebuild, which has to begin again."""
    if isinstance(known, TableRecord):
        ctx.ledger.tables.stop(ctx.name, known.oid, trouble)
        ctx.progress(f"paused {known.qualified}: {trouble.reason}")
    else:
        give_up(ctx, known, trouble.reason)
        ctx.progress(f"gave up the {known.cause} of {known.qualified}: {trouble.reason}")


def give_up(ctx: Context, rebuild: LoadRecord, reason: str) -> None:
    """End a rebuild that cannot be finished; its table stays as it is."""
    ctx.ledger.loads.give_up(ctx.name, rebuild, reason=reason)
