"""The ledger follows the publication: which tables joined it after bootstrap, left it, or came back, and with what options.

A table that joined is `new`: its changes are landed from its first day, and it waits for its copy. A table that left is
merged through the last position at which it was surely published, and is then `dropped`; the lake keeps it, or not. One
that came back since the last look, or of which other rows or columns are published, is paused until it is copied again; so are
all tables where an alteration may have kept kinds of changes out of the stream. The version of a catalog row cannot be brought back:
options that were changed and changed back are noticed, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.errors import LakeError, Trouble
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.flow.schema.names import follow_names, table_facts
from penstock.flow.schema.publication import changed, publishing_of
from penstock.ledger.records import Publishing
from penstock.ledger.table_records import TableRecord
from penstock.ledger.windows import LedgerSnapshot
from penstock.lsn import Lsn
from penstock.shapes.accepted import TableFacts
from penstock.shapes.row_identity import misread
from penstock.shapes.source_table import SourceTable
from penstock.source import server_info
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.preflight.findings import names
from penstock.source.publication import PublicationFacts
from penstock.source.server_info import Sight
from penstock.source.session import SourceSession


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """Hold which tables joined, left, or left and came back since the last look; of these with what they are now."""

    back: tuple[tuple[TableRecord, SourceTable], ...]
    left: tuple[TableRecord, ...]
    joined: tuple[SourceTable, ...]


def member_changes(known: Iterable[TableRecord], found: CatalogSnapshot, *, split: bool) -> MemberChanges:
    """Hold the published tables against the ledger's. Pure.

    `split`: the publication shows partitions in place of the partitioned tables that the ledger knows, which then have
    not left, and the partitions have not joined.
    """
    before = {record.oid: record for record in known}
    now = {table.oid for table in found.tables} | found.unchanged
    there = {relation.oid for relation in found.relations}
    pairs = ((before[table.oid], table) for table in found.tables if table.oid in before)
    members = {record.oid for record in before.values() if record.state != "dropped" and record.left_lsn is None}
    going = {record.oid for record in before.values() if record.left_lsn is not None and record.state == "paused"}
    left = (before[oid] for oid in before if oid not in now and oid in members | going)
    joined = (table for table in found.tables if table.oid not in members)
    return MemberChanges(
        back=tuple((record, table) for record, table in pairs if came_back(record, table)),
        left=tuple(
            record for record in left if not (split and record.oid in there and record.accepted.shape.kind == "p")
        ),
        joined=tuple(table for table in joined if not (split and table.parents)),
    )


def follow_publication(
    ctx: Context, conn: SourceSession, found: CatalogSnapshot, known: LedgerSnapshot, *, position: Lsn
) -> bool:
    """Note in the ledger, as it was `known` at this look, which tables joined and left; return whether it was changed.

    `position` is where the last window ended: a table that was published at the look for that window, and is not now,
    was published through there at least.
    """
    changes = member_changes(known.tables, found, split="via_root" in known.pipeline.withheld)
    for record, table in changes.back:
        hide(ctx, conn, {table.oid: table.membership}, came_back_reason(ctx, record, table))
    there = {relation.oid for relation in found.relations}
    for record in changes.left:
        _leave(ctx, record, position, exists=record.oid in there)
    gone = changes.back or changes.left
    there_now = ctx.ledger.tables.all(ctx.name, but=found.unchanged) if gone else known.tables
    renamed = follow_names(ctx, found, there_now)  # before others take the names that are free now
    if changes.joined:
        sight = server_info.sight(conn)  # after the tables were read: whoever wrote before they joined has a lower id
        for table in changes.joined:
            _join(ctx, table, sight)
    return bool(renamed or gone or changes.joined)


def came_back(record: TableRecord, table: SourceTable) -> bool:
    """Return whether a table is a member in another way than at the last look: what it wrote between may be lost."""
    if record.state == "dropped" or record.left_lsn is not None:
        return False
    before = record.accepted.shape.membership
    return bool(before) and not set(before) & set(table.membership)


def came_back_reason(ctx: Context, record: TableRecord, table: SourceTable) -> str:
    """Say what may be missing; the catalog does not distinguish an ALTER that was undone from one that left the table out."""
    name = ctx.pipeline.publication
    if record.accepted.shape.filter != table.filter:
        return (
            f"the row filter of publication {name} changed; rows that it left out, or leaves out now, are in no window"
        )
    return (
        f"it was taken out of publication {name} and put back, or its row filter or its columns there were changed and changed "
        "back; what it wrote meanwhile may be in no window"
    )


def _leave(ctx: Context, record: TableRecord, position: Lsn, *, exists: bool) -> None:
    discard = ctx.pipeline.tables.on_removed == "drop"
    what = f"left publication {ctx.pipeline.publication}" if exists else "was dropped at the source"
    after = "its lake table is to be dropped" if discard else "its lake table stays as it is then"
    message = f"{record.qualified} {what}; it is merged through {position} and no further, and {after}"
    ctx.ledger.membership.leave(ctx.name, record.oid, through=position, discard=discard, message=message)
    ctx.progress(message)


def _join(ctx: Context, table: SourceTable, sight: Sight) -> None:
    message = f"{table.qualified} joined publication {ctx.pipeline.publication}; it waits for its copy"
    facts = table_facts(ctx, table)
    try:
        ctx.ledger.membership.join(ctx.name, facts, lsn=sight.lsn, xid=sight.xid, message=message)
    except LakeError as error:  # it must not stop capture; its changes are landed
        ctx.ledger.events.add_on_change(
            ctx.name,
            slug=error.slug,
            level="error",
            message=f"{table.qualified} joined: {error.message}{_holder(ctx, facts)}",
            table_oid=table.oid,
        )
        message = f"{table.qualified} cannot join: {error.message}"
    ctx.progress(message)


def _holder(ctx: Context, facts: TableFacts) -> str:
    """Name the table that has a target, or is to have it."""
    for record in ctx.ledger.tables.all(ctx.name):
        if (
            record.oid != facts.oid
            and record.state != "dropped"
            and (record.renamed_to or record.target) == facts.target
        ):
            return f": {'.'.join(facts.target)} is the lake's name of {record.qualified}"
    return ""


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
        if table is not None and record.identity != "n" and table.identity == "n" and (why := misread(table)):
            reason = f"publication {ctx.pipeline.publication} was altered, and {'; '.join(why)}, then resync it"
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
