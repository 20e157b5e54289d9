"""Tables that wait for a copy: which they are, when to announce them, what forbids a copy, and what must end before it.

A transaction that was open when a table joined has changes from before in no window. One that was open when a label was renamed, or an
attribute added, has them under the old one. So the copy must see them: its snapshot may be taken only when every such transaction has ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

from penstock.conditions import needs_copy
from penstock.errors import LakeError, PenstockError, SourceError
from penstock.flow.context import Context, any_copied, on_change
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.polling import poll
from penstock.shapes.diff import is_written_otherwise
from penstock.shapes.row_identity import problem, unlogged_partitions
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog, server_info, session, slot, types
from penstock.source.publication import PublicationFacts

ANNOUNCE_AGAIN = timedelta(minutes=10)
_POLL_SECONDS = 1.0


def tables_to_announce(ctx: Context) -> list[str]:
    """Name the tables for which `resync` is to be started now; none where a person decides."""
    settled = not ctx.ledger.pipelines.get(ctx.name).withheld
    joined, paused = settled and ctx.pipeline.tables.on_added == "copy", settled and any_copied(ctx.pipeline)
    oids = set(ctx.ledger.membership.to_announce(ctx.name, joined=joined, paused=paused, every=ANNOUNCE_AGAIN))
    found = [table for table in ctx.ledger.tables.all(ctx.name) if table.oid in oids] if oids else []
    return [table.qualified for table in due(ctx, found, woken=True)]


def due(ctx: Context, tables: Sequence[TableRecord], *, woken: bool = False) -> list[TableRecord]:
    """Return the tables that a resync without names copies: the new ones, and the paused ones that it answers.

    It answers none while the publication withholds changes that it has sent: the copy would soon be wrong. One that capture has
    `woken` leaves new ones to a person then, too, and where the pipeline says so.
    """
    settled = not ctx.ledger.pipelines.get(ctx.name).withheld
    new = not woken or (settled and ctx.pipeline.tables.on_added == "copy")
    return [
        table
        for table in tables
        if (table.state == "new" and new) or (settled and table.left_lsn is None and _is_answered(ctx, table))
    ]


def _is_answered(ctx: Context, table: TableRecord) -> bool:
    return needs_copy(table.remedy) and on_change(ctx.pipeline, table.schema, table.name) != "pause"


def why_no_copy(table: SourceTable, events: PublicationFacts | None, *, joining: bool) -> PenstockError | None:
    """Return what forbids a table's copy under a publication that sends these events, or None.

    A table that is `joining` has never had the rows that are in no WAL.
    """
    if (events is None or events.sends_old) and (found := problem(table)):
        why = "; ".join(found)
        return SourceError(
            "no-usable-identity",
            f"expected the rows of {table.qualified} to be found after its copy, but {why}, then resync it",
        )
    if not joining and (unlogged := unlogged_partitions(table)):
        return LakeError(
            "schema-change",
            f"expected every partition of {table.qualified} to be in the WAL, but these are unlogged: "
            f"{', '.join(leaf.qualified for leaf in unlogged)}; set them logged or detach them, then resync it",
        )
    return None


def with_named_parts(ctx: Context, tables: Sequence[TableRecord]) -> Mapping[int, SourceTable]:
    """Read the tables whose values are written with what the catalog says of their types, as they are now, by oid.

    No lock of the table keeps `alter type` away from transactions that write to it.
    """
    oids = [table.oid for table in tables if table.accepted.shape.enums or table.accepted.shape.composites]
    if not oids:
        return {}
    with session.connect(ctx.source, what=f"{ctx.name}:resync") as conn:
        members = catalog.members(conn, ctx.pipeline.publication, oids)
        found = catalog.describe(conn, members, sizes=False)
    return {table.oid: types.as_chosen(ctx.pipeline, table) for table in found}


def hindered(
    ctx: Context,
    tables: Sequence[TableRecord],
    seen: Mapping[int, SourceTable] = MappingProxyType({}),
    *,
    wait: float | None = None,
) -> Mapping[int, SourceError]:
    """Wait for the transactions that a copy must see; return which tables must wait longer, and why, by oid.

    Every snapshot taken from then on may be used to copy the others. What is open now counts for a table that is `seen` to have its values
    written otherwise since it was accepted, or to be new. Waits `wait` seconds at most, else as long as a slot's creation may.
    """
    retyped = {
        table.oid
        for table in tables
        if table.oid in seen and (table.waits or is_written_otherwise(table.accepted.shape, seen[table.oid]))
    }
    if not any(table.joined_lsn is not None or table.oid in retyped for table in tables):
        return {}
    limit = ctx.pipeline.source.slot_timeout if wait is None else wait
    shown = ""
    with session.connect(ctx.source, what=f"{ctx.name}:joined") as conn:
        joined = [table for table in tables if table.joined_lsn is not None and table.oid not in retyped]
        if retyped:
            now = server_info.sight(conn)
            of_now = [
                replace(table, joined_lsn=now.lsn, joined_xid=now.xid) for table in tables if table.oid in retyped
            ]
            joined += of_now
        for _ in poll(limit, _POLL_SECONDS):
            blocker = _blocker(ctx, conn, joined)
            if not blocker:
                return {}
            if blocker != shown:
                ctx.progress(f"waiting, at most {limit:.0f} s, for {blocker}")
                shown = blocker
        still = ((table, _blocker(ctx, conn, [table])) for table in joined)
        return {table.oid: _still_open(table, limit, why) for table, why in still if why}


def _blocker(ctx: Context, conn: session.SourceSession, joined: Sequence[TableRecord]) -> str:
    """Name what must end before the tables can be copied, or nothing."""
    bounds = [table.joined_xid for table in joined if table.joined_xid is not None]
    open_ = server_info.open_before(conn, max(bounds)) if bounds else []
    found = ["; ".join(sorted(blocker.name() for blocker in open_))] if open_ else []
    on_standby = [table.joined_lsn for table in joined if table.joined_xid is None and table.joined_lsn is not None]
    if on_standby:
        found += _unread(ctx, conn, max(on_standby))
    return "; ".join(found)


def _unread(ctx: Context, conn: session.SourceSession, lsn: Lsn) -> list[str]:
    """Ask the slot, where a standby gives out no transaction ids: it restarts before every transaction that is open."""
    state = slot.read_slot(conn, ctx.pipeline.slot)
    restart = state.restart if state else None
    if restart is not None and restart >= lsn:
        return []
    return [
        f"slot {ctx.pipeline.slot} to leave {lsn} behind: it restarts at {restart}, before what is still open there"
    ]


def _still_open(table: TableRecord, limit: float, blocker: str) -> SourceError:
    when = "joined" if table.waits else "had types that changed"
    return SourceError(
        "table-joining",
        f"expected every transaction that was open when {table.qualified} {when} to end within {limit:.0f} s, so that the copy "
        f"sees what they wrote, but these were open: {blocker}; nothing was copied: end them or wait, then run again",
    )
