"""Notice, once per window, what changed in a table's catalog entries and the stream does not carry.

PostgreSQL emits nothing for most DDL. An added column is followed, with the value that old rows show; any other
change pauses that one table with the reason, while capture and all other tables continue. Where the catalog alone
cannot say it, a bounded look at the rows does, or the window's own messages; what stays unknown pauses the table. Of columns whose text
is the name of another object it is told once that what becomes of that name is in no stream.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from penstock.flow import table_status
from penstock.flow.context import Context, on_change
from penstock.flow.schema.apply_plan import apply, await_copy, retire_rows
from penstock.flow.schema.questions import Known, OpenTable, ask_for_files, ask_for_values, held_files, plan_of
from penstock.ledger.table_records import TableRecord, TableState
from penstock.ledger.windows import LedgerSnapshot
from penstock.lsn import Lsn
from penstock.shapes import row_identity
from penstock.shapes.accepted import Accepted, OpenQuestion
from penstock.shapes.diff import grown_enums
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.mirror_column import reserved
from penstock.shapes.pg_snapshot import Snapshot
from penstock.shapes.plan import plan
from penstock.shapes.reads import altered_with_its_rows, leaves_to_inspect
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import ADDED_ONLY, Evidence, Policy
from penstock.source import leaf_rows, server_info, types
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.session import SourceSession

WATCHED: tuple[TableState, ...] = ("new", "copying", "copied", "ready")


@dataclass(frozen=True, slots=True)
class Look:
    """Hold what a look at the catalog has found, and the tables of which the window has to answer what became of them.

    `unchanged` are the published tables that are as the ledger has them.
    """

    found: Mapping[int, SourceTable]
    open_tables: tuple[OpenTable, ...]
    unchanged: frozenset[int] = frozenset()


def follow(
    ctx: Context, conn: SourceSession, snapshot: CatalogSnapshot, ledger: LedgerSnapshot, trigger: str | None = None
) -> Look:
    """Hold the source's tables against the ledger's: save added columns, pause what changed otherwise.

    `trigger` is the token of the source's event trigger as it was no later than the look, empty where that may miss commands.
    """
    now = {oid: types.as_chosen(ctx.pipeline, table) for oid, table in snapshot.by_oid.items()}
    cases: list[OpenTable] = []
    publishing = ledger.pipeline.publishing
    sent = publishing.sent if publishing else None
    place = cache(lambda: server_info.sight(conn).lsn)  # after the look, and so after whatever a lost partition took
    if now or trigger is not None:
        ctx.ledger.shapes.note(
            ctx.name,
            {oid: KnownShape.of(table.shape) for oid, table in now.items()},
            seen_at=server_info.inserted(conn),
            generation=trigger,
            unchanged=snapshot.unchanged,
        )
    note_named_objects(ctx, now.values())
    for record in ledger.tables:
        if record.state in WATCHED and record.left_lsn is None and record.oid in now:
            cases += _follow(ctx, conn, record, now[record.oid], place, sent=sent, is_logged=bool(trigger))
    for rebuild in ledger.builds:
        if rebuild.cause != "shadow":
            if rebuild.oid in now:
                cases += _follow(ctx, conn, rebuild, now[rebuild.oid], place, sent=sent)
            else:
                table_status.stop(ctx, rebuild, plan(rebuild, None).trouble)
    if stamped := {oid: (snapshot.stamps[oid], table.shape) for oid, table in now.items() if oid in snapshot.stamps}:
        ctx.ledger.tables.note_looked(ctx.name, stamped, WATCHED)
    return Look(now, tuple(cases), snapshot.unchanged)


def _follow(
    ctx: Context,
    conn: SourceSession,
    known: Known,
    now: SourceTable,
    place: Callable[[], Lsn],
    *,
    sent: Collection[str] | None,
    is_logged: bool = False,
) -> list[OpenTable]:
    """Take over what can be followed, refuse the rest, and return the table where the stream has to answer."""
    if known.state == "new" and not reserved(column.name for column in now.columns):
        await_copy(ctx, known, now)
        return []
    rows_sent = _rows_sent(ctx, known, now)
    policy = policy_of(ctx, known, sent)
    decided = plan_of(known, now, policy, Evidence(rows_sent=rows_sent))
    labels = _labels_to_check(conn, known, now)
    asked: OpenTable | None = None
    if decided.reason is not None and not labels:
        if decided.asks and not altered_with_its_rows(known.columns, known.accepted.shape, now):
            inspected = leaves_to_inspect(known.columns, known.accepted.shape, now)
            files = [leaf.oid for leaf in inspected.files if leaf.oid not in rows_sent]
            # after the rows were looked at: what they were before is in the WAL up to here
            if files:
                here = server_info.flushed(conn)
                asked = ask_for_files(known, now, policy, rows_sent, files=files, here=here)
        if (asked is None or asked.is_refused) and is_logged and isinstance(known, TableRecord) and _is_sent(sent, now):
            # a place in the WAL behind all that the look has seen
            of_values = ask_for_values(known, now, policy, rows_sent, here=server_info.inserted(conn))
            asked = of_values or asked
    if asked is not None:
        if not asked.is_refused:
            apply(ctx, known, asked.meanwhile(), asked.accepted())
        return [asked]
    if decided.reason is not None:
        table_status.stop(ctx, known, decided.trouble)
    else:
        accepted = Accepted(now.shape, labels)
        if decided.gone:
            accepted = retire_rows(ctx, known, decided, accepted, place())
        apply(ctx, known, decided, accepted)
    return []


def _is_sent(sent: Collection[str] | None, now: SourceTable) -> bool:
    """Return whether a new file without a command of DDL is told by the stream: a TRUNCATE, where it may be of a table that changes silently."""
    return not now.changes_silently or (sent is not None and "truncate" in sent)


def _labels_to_check(conn: SourceSession, known: Known, now: SourceTable) -> tuple[OpenQuestion, ...]:
    """Return the enums that landed labels have to be held against, and until when.

    An added label is followed, but the catalog does not say whether it had another name for a while, under which rows have landed.
    """
    waiting = known.accepted.asked("label")
    if more := grown_enums(known.accepted.shape, now):
        through = server_info.flushed(conn)
        waiting |= {oid: OpenQuestion("label", oid, through) for oid in more}
    return tuple(waiting.values())


def policy_of(ctx: Context, known: Known, sent: Collection[str] | None = None) -> Policy:
    """Return what is followed of a table: only one that readers see can be changed as it is, any other is copied again.

    `sent` are the kinds of change that the publication sends, None where that is not known.
    """
    sends_old = sent is None or bool({"update", "delete"} & set(sent))
    is_seen = isinstance(known, TableRecord) and known.state == "ready"
    if not is_seen or on_change(ctx.pipeline, known.schema, known.name) != "follow":
        return replace(ADDED_ONLY, sends_old=sends_old)
    lake = ctx.pipeline.lake
    return Policy(
        sends_old=sends_old,
        on_dropped_column=lake.on_dropped_column,
        on_dropped_partition=lake.on_dropped_partition,
        on_renamed_table=lake.on_renamed_table,
    )


def _rows_sent(ctx: Context, known: Known, now: SourceTable) -> frozenset[int]:
    """Look at the rows of the leaves that the catalog leaves open, and name those that hide nothing."""
    inspected = leaves_to_inspect(known.columns, known.accepted.shape, now)
    oldest = _oldest_unseen(ctx, known) if inspected.files else None
    waiting = held_files(known.accepted)  # for these the last look was not before the change
    sure = [] if oldest is None else [leaf for leaf in inspected.files if leaf.oid not in waiting]
    if not (inspected.arrived or sure):
        return frozenset()
    with leaf_rows.looking(ctx.reader, what=f"{ctx.name}:look") as rows:
        arrived = (each for each in inspected.arrived if rows.empty_in(each.leaf))
        found = {each.leaf.oid for each in arrived}
        found |= {leaf.oid for leaf in sure if oldest is not None and rows.kept(leaf, oldest)}
    return frozenset(found)


def _oldest_unseen(ctx: Context, known: Known) -> int | None:
    """Return an id of which every older transaction had ended at the last look, which is that of the copy before the first window."""
    found = ctx.ledger.windows.looked_xid(ctx.name)
    if found is not None:
        return found
    copies = ctx.ledger.loads.copies(ctx.name)
    snapshots = (each.snapshot for each in copies if (each.copy_id, each.oid) == (known.copy_id, known.oid))
    return next((Snapshot.parse(snapshot).xmin for snapshot in snapshots), None)


def note_named_objects(ctx: Context, tables: Iterable[SourceTable]) -> None:
    """Record an event for each table that has such columns, unless the last one of it says the same."""
    for table in tables:
        columns = row_identity.names_beside_key(table)
        if not columns:
            continue
        message = f"{table.qualified} has {row_identity.named(columns)}: {row_identity.LOST}"
        table_status.warn(ctx, "text-not-stored", message, table.oid)


def added_only(ctx: Context, now: SourceTable | None) -> Policy:
    """Return that added columns alone are followed, and whether updates and deletes are sent, where that matters for a table."""
    if now is None or row_identity.unfound(now) is None:
        return ADDED_ONLY
    publishing = ctx.ledger.pipelines.get(ctx.name).publishing
    return replace(ADDED_ONLY, sends_old=publishing is None or bool({"update", "delete"} & set(publishing.sent)))
