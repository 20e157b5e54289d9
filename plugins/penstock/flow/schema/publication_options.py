"""The publication's own options: what an alteration may have kept out of the stream, and which tables that concerns.

The version of a catalog row cannot be brought back: so options that were changed and changed back are noticed, too. What
was not sent meanwhile is in no window, and only a copy brings it: all tables are paused until they have one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from penstock.config.model import CHANGES
from penstock.errors import Trouble
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.ledger.records import Publishing
from penstock.ledger.table_records import TableRecord
from penstock.shapes.replica_identity import problem, remedy
from penstock.shapes.source_table import SourceTable
from penstock.source import server_info
from penstock.source.preflight.findings import names
from penstock.source.publication import PublicationFacts
from penstock.source.session import SourceSession

KINDS = (*CHANGES, "via_root")
_SAID = {"via_root": "changes of partitions under their root's name", "generated": "stored generated columns"}


def begin(ctx: Context, found: PublicationFacts) -> None:
    """Note how the publication publishes, before the slot is made: that is what the tables' lake is promised."""
    ctx.ledger.pipelines.note_publishing(ctx.name, publishing_of(found, None, ctx.pipeline.source.publish))


def follow_options(
    ctx: Context,
    conn: SourceSession,
    found: PublicationFacts | None,
    before: Publishing | None,
    tables: Iterable[SourceTable] = (),
) -> bool:
    """Hold the publication's options against those `before`, which the ledger has; where it was altered, pause what that concerns.

    `tables` are those of the look: one whose key is not sent any more is paused for that. Return whether the ledger was changed.
    """
    if found is None:  # that it is missing is the slot's verdict
        return False
    now = publishing_of(found, before, ctx.pipeline.source.publish)
    if before is not None and before.stamp != now.stamp:
        known = [
            table for table in ctx.ledger.tables.all(ctx.name) if table.state != "dropped" and table.left_lsn is None
        ]
        reason = f"publication {ctx.pipeline.publication} was altered: {changed(before, now)}"
        hide(ctx, conn, dict.fromkeys((table.oid for table in known), None), reason, publishing=now)
        _pause_without_key(ctx, {table.oid: table for table in tables}, known, now)
    elif before != now:  # the first look, or `source.publish` says something else
        ctx.ledger.pipelines.note_publishing(ctx.name, now)
    return before != now


def _pause_without_key(
    ctx: Context, tables: Mapping[int, SourceTable], known: Iterable[TableRecord], now: Publishing
) -> None:
    """Say of a table whose key had generated columns that are not sent any more that no copy helps before it has another."""
    if not {"update", "delete"} & set(now.sent):
        return
    for record in known:
        table = tables.get(record.oid)
        if table is not None and record.identity != "n" and table.identity == "n" and (why := problem(table)):
            reason = f"publication {ctx.pipeline.publication} was altered, and {why}; {remedy(table)}, then resync it"
            table_status.stop(ctx, record, Trouble("no-usable-identity", reason, "person"))


def hide(
    ctx: Context,
    conn: SourceSession,
    tables: Mapping[int, Sequence[str] | None],
    reason: str,
    *,
    publishing: Publishing | None = None,
) -> None:
    """Pause tables of which changes may be in no window; a copy must see every transaction that is open now.

    With it goes how the publication is `publishing` now. A table that waits for its first copy goes on waiting.
    """
    sight = server_info.sight(conn)
    trouble = Trouble("publication-changed", reason, "copy")
    with ctx.ledger.together(ctx.name):
        if publishing is not None:
            ctx.ledger.pipelines.note_publishing(ctx.name, publishing)
        known = [table for table in ctx.ledger.tables.all(ctx.name) if table.oid in tables]
        there = [table for table in known if table.state not in ("new", "dropped") and table.left_lsn is None]
        table_status.stop_all(ctx, there, {table.oid: _after(table, trouble) for table in there}, noted=True)
        message = f"{_hidden(known)}: {reason}"
        ctx.ledger.membership.hide(ctx.name, tables, trouble, lsn=sight.lsn, xid=sight.xid, message=message)
    ctx.progress(message)


def _after(table: TableRecord, trouble: Trouble) -> Trouble:
    """Return a trouble that does not hide the one that the table has."""
    if table.paused_slug in (None, trouble.slug):
        return trouble
    return replace(
        trouble, reason=f"{trouble.reason}; before that it was paused by {table.paused_slug}: {table.paused_reason}"
    )


def _hidden(known: Iterable[TableRecord]) -> str:
    """Say what becomes of tables of which changes may be in no window."""
    tables = sorted(known, key=lambda table: table.qualified)
    waiting = names(table.qualified for table in tables if table.state == "new")
    paused = names(table.qualified for table in tables if table.state != "new")
    if paused or not waiting:
        return f"paused {paused or 'no table'}"
    return f"{waiting} waits on for its first copy"


def publishing_of(found: PublicationFacts, before: Publishing | None, meant: Collection[str]) -> Publishing:
    """Return what the ledger keeps of a publication: what it has ever sent is promised, as far as it is meant to be."""
    promised = {*found.sent, *(before.promised if before else ())} & {*meant, "via_root"}
    return Publishing(
        stamp=found.stamp,
        owner=found.owner,
        sent=found.sent,
        promised=tuple(kind for kind in KINDS if kind in promised),
        generated=found.generated,
    )


def changed(before: Publishing, now: Publishing) -> str:
    """Say what an alteration may have kept out of the stream, and what it does keep out."""
    lost, won = list(_without(before.sent, now.sent)), list(_without(now.sent, before.sent))
    if before.generated != now.generated:
        (lost if before.generated else won).append("generated")
    if lost:
        return f"it does not send {kinds_text(lost)} any more; what was not sent is in no window"
    if won:
        return f"it sends {kinds_text(won)} again, or for the first time; what was not sent before is in no window"
    other = "; its owner is another" if before.owner != now.owner else ""
    return (
        f"it shows the options that it had{other}; meanwhile it may have left out any kind of change "
        f"({kinds_text(KINDS)}), which is then in no window. PostgreSQL keeps the version of its last alteration only: a new owner or "
        "a new name alone looks the same as options that were changed and changed back; who knows that it was only that may "
        "resume the tables before they are copied"
    )


def kinds_text(kinds: Sequence[str]) -> str:
    """Name kinds of change in a sentence."""
    return names(_SAID.get(kind, f"{kind}s") for kind in kinds)


def _without(these: Sequence[str], those: Sequence[str]) -> tuple[str, ...]:
    return tuple(kind for kind in these if kind not in those)
