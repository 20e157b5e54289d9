"""Where a table stops, and where what is being built of one does: the one place, whatever was found and by whom.

A cut, a window and a look at the publication stop tables `together` with what they stand for: all of it happens, or nothing.
"""

from collections.abc import Iterable, Mapping

from penstock.conditions import with_runbook
from penstock.errors import Trouble
from penstock.flow.context import Context
from penstock.ledger.table_records import LoadRecord, TableRecord


def stop(ctx: Context, known: TableRecord | LoadRecord, trouble: Trouble) -> None:
    """Pause a table for what its trouble's remedy brings; end a rebuild, which has to begin again."""
    if isinstance(known, TableRecord):
        stop_all(ctx, [known], {known.oid: trouble})
    else:
        give_up(ctx, known, trouble.reason)
        ctx.progress(f"gave up the {known.cause} of {known.qualified}: {trouble.reason}")


def stop_all(
    ctx: Context, tables: Iterable[TableRecord], troubles: Mapping[int, Trouble], *, noted: bool = False
) -> None:
    """Pause those of these tables that have a trouble, at once; each is told, but where what stops them all is `noted` as one."""
    ctx.ledger.tables.stop(ctx.name, troubles, noted=noted)
    for table in tables:
        if table.oid in troubles and not noted:
            met = troubles[table.oid]
            ctx.progress(with_runbook(f"paused {table.qualified}: [{met.slug}] {met.reason}", met.slug))


def warn(ctx: Context, slug: str, message: str, oid: int | None = None) -> None:
    """Note what stops nothing, unless the last word of it is the same."""
    if ctx.ledger.events.add_on_change(ctx.name, slug=slug, level="warning", message=message, table_oid=oid):
        ctx.progress(f"[{slug}] {message}")


def give_up(ctx: Context, rebuild: LoadRecord, reason: str) -> None:
    """End a rebuild that cannot be finished; its table stays as it is."""
    ctx.ledger.loads.give_up(ctx.name, rebuild, reason=reason)
