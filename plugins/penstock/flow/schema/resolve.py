"""Hold what a window brought against the catalog, before it is staged.

What the look before had to leave open is decided by the stream, and a table is paused whose landed rows do not fit its partitions.
Whether they fit its columns is asked once, by the merge that is to take them in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.errors import Trouble
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.flow.schema.apply_plan import apply, keep_open, retire_rows
from penstock.flow.schema.evidence import (
    Landed,
    emptied,
    explained_files,
    histories,
    rows_kept,
    strange_label,
    transactions,
)
from penstock.flow.schema.questions import OpenTable
from penstock.flow.schema.run import Look, policy_of
from penstock.ledger.records import WindowRecord
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes import timeline
from penstock.shapes.accepted import Accepted, taken_again
from penstock.shapes.ddl_log import read_rewrites
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.pg_snapshot import Snapshot
from penstock.shapes.plan import Plan
from penstock.shapes.source_table import SourceTable
from penstock.shapes.timeline import RelationMapping
from penstock.source import server_info, slot
from penstock.source.session import SourceSession

Mappings = Mapping[tuple[int, int], RelationMapping]
"""Which of the catalog's columns landed relations have, by oid and version; without those of which the catalog was not asked."""


def resolve_questions(ctx: Context, conn: SourceSession, look: Look, landed: Landed, window: WindowRecord) -> Mappings:
    """Hold what a window brought against the catalog, before it is staged: decide what was left open, pause what does not fit.

    Return which of the catalog's columns the landed relations have.
    """
    content = _Content(landed, _mappings(ctx, landed, window.from_lsn), window)
    for case in look.open_tables:
        if case.columns:
            _resolve_values(ctx, case, landed, window)
        else:
            _resolve_files(ctx, conn, case, landed, window)
    touched = {oid for oid, _ in landed.relations} | {part.root for part in landed.totals.partitions}
    for record in ctx.ledger.tables.all(ctx.name, but=look.unchanged - touched):
        if record.state in ("copied", "ready") and record.left_lsn is None:
            _resolve_landed(ctx, conn, record, look, content)
        elif record.remedy == "read" and record.left_lsn is None:
            _resolve_waiting(ctx, record, look, content)
    return content.mappings


@dataclass(frozen=True, slots=True)
class _Content:
    """Hold what a window brought, with what its relations' columns are."""

    landed: Landed
    mappings: Mappings
    window: WindowRecord

    def attnums(self, oid: int, version: int) -> tuple[int, ...]:
        """Return the attnums of a relation version's columns, none where they are not known."""
        known = self.mappings.get((oid, version))
        return known.attnums or () if known else ()


def _resolve_files(ctx: Context, conn: SourceSession, case: OpenTable, landed: Landed, window: WindowRecord) -> None:
    """Follow a table whose new files are explained, refuse it where that is not so up to the position where it had to be."""
    explained = explained_files(ctx, case, landed)
    over = window.upto_lsn >= case.through or case.is_refused
    decided = case.plan(explained)
    if decided.reason is not None and over and case.policy.on_dropped_partition is not None:
        decided = case.plan(explained, emptied(ctx, case, explained))
    if decided.reason is None:
        accepted = Accepted(case.now.shape)
        if decided.gone:
            accepted = retire_rows(ctx, case.known, decided, accepted, server_info.sight(conn).lsn)
        apply(ctx, case.known, case.rest(decided), accepted)
    elif over:
        keep_open(ctx, case.known, case.with_explained(explained))
        table_status.stop(ctx, case.known, decided.trouble)
    elif explained:
        apply(ctx, case.known, replace(case.best(), events=()), case.accepted(without=explained))


def _resolve_values(ctx: Context, case: OpenTable, landed: Landed, window: WindowRecord) -> None:
    """Follow a rewritten table if it was logged that all values were kept, refuse it if that is not so or was not logged."""
    oid, versions = case.known.oid, case.versions()
    history = histories(ctx, landed, [oid], window.from_lsn).get(oid)
    values = "unsure" if history is None else read_rewrites(history, case.before(), versions)
    if values == "open" and window.upto_lsn < case.through:
        apply(ctx, case.known, replace(case.best(), events=()), case.accepted(checked=True))
    elif values == "kept" and history and rows_kept(ctx, case, landed, history.found[-1].generation):
        apply(ctx, case.known, case.rest(case.best()), Accepted(case.now.shape))
    else:
        table_status.stop(ctx, case.known, replace(case.refusal, leaves_read=None).trouble)


def _mappings(ctx: Context, landed: Landed, since: Lsn) -> Mappings:
    """Read the columns of the landed relations by the shapes of their tables that were known before and after."""
    known = histories(ctx, landed, {oid for oid, _ in landed.relations}, since)
    return {
        key: timeline.mapping_of(relation, landed.after[key], known[key[0]])
        for key, relation in landed.relations.items()
        if key[0] in known
    }


def logged_last(landed: Landed) -> dict[int, KnownShape]:
    """Return what the source's event trigger logged last of each table, where no message that says nothing came after."""
    if landed.ddl is None:
        return {}
    last = ((oid, shapes[-1]) for oid, shapes in landed.ddl.shapes.items())
    return {oid: shape for oid, shape in last if shape.gaps == landed.ddl.gaps}


def _resolve_landed(ctx: Context, conn: SourceSession, record: TableRecord, look: Look, content: _Content) -> None:
    now = look.found.get(record.oid)
    if now is None and record.oid not in look.unchanged:
        return
    found = _partition_misfit(record, now, content) or _gone_misfit(ctx, record, content)
    if found is None and now and (label := _renamed_label(ctx, record, now, content)):
        found = Trouble("schema-change", label, "copy")
    if found and not _copied_since(ctx, record, content.window.upto_lsn):
        reads = found.remedy == "read" and policy_of(ctx, record).on_dropped_partition == "follow"
        table_status.stop(ctx, record, found if reads else replace(found, remedy="copy"))
    elif now is not None:
        _end_checks(ctx, conn, record, content.window.upto_lsn)


def _resolve_waiting(ctx: Context, record: TableRecord, look: Look, content: _Content) -> None:
    """Leave a table that waits for rows of partitions to a copy where the window has what such a fetch does not mend."""
    now = look.found.get(record.oid)
    if now is None or now.kind != "p":
        return
    keeps = ctx.pipeline.lake.on_dropped_partition == "keep"
    found = _partition_misfit(record, now, content) or _gone_misfit(ctx, record, content)
    if found is not None and (keeps or found.remedy == "copy"):
        table_status.stop(ctx, record, replace(found, remedy="copy"))


def _partition_misfit(record: TableRecord, now: SourceTable | None, content: _Content) -> Trouble | None:
    """Say why what a window brought of a table does not fit its partitions or their key; `now` is None where that is as the ledger has it."""
    if (now.kind if now else record.accepted.shape.kind) != "p":
        return None
    landed, keys = content.landed, {column.attnum for column in record.columns if column.key}
    named = {
        sent.name
        for (oid, version), relation in landed.relations.items()
        if oid == record.oid and (attnums := content.attnums(oid, version))
        for sent, attnum in zip(relation.columns, attnums, strict=True)
        if attnum in keys
    }
    if named & landed.old_nulls.get(record.oid, frozenset()):
        text = "old rows came without the table's key: a partition had another replica identity for a while"
        return Trouble("schema-change", text, "copy")
    known = {*record.accepted.shape.leaves, *(leaf.oid for leaf in (now.leaves if now else ()))}
    known |= {each.oid for each in record.accepted.gone if (each.lsn or 0) > content.window.from_lsn}
    for part in landed.totals.partitions:
        if part.root == record.oid and part.oid not in known:
            text = f"partition {part.name} took rows and was detached or dropped with them between two looks"
            return Trouble("schema-change", text, "read")
    return None


def _gone_misfit(ctx: Context, record: TableRecord, content: _Content) -> Trouble | None:
    """Say why what a window brought cannot be told from the rows of partitions that are gone; None is as the ledger has it."""
    landed, accepted = content.landed, record.accepted
    archive = ctx.pipeline.lake.on_dropped_partition == "keep" and bool(accepted.kept)
    if archive and any(entry.oid == record.oid and entry.counts.truncates for entry in landed.files):
        text = "the table was truncated, and the lake keeps rows of partitions that are gone, which would go with the others"
        return Trouble("schema-change", text, "copy")
    taken = [part.oid for part in landed.totals.partitions if part.root == record.oid]
    for each, snapshot in taken_again(accepted, taken, content.window.from_lsn):
        if snapshot is None or not all(map(Snapshot.parse(snapshot).sees, transactions(ctx, landed, record.oid))):
            text = f"rows came into the bounds of partition {each.name} again before the lake let its own go"
            return Trouble("schema-change", text, "read")
    return None


def _renamed_label(ctx: Context, record: TableRecord, now: SourceTable, content: _Content) -> str | None:
    checks = record.accepted.asked("label")
    ours = [entry for entry in content.landed.files if entry.oid == record.oid and entry.rows] if checks else []
    files = {entry: content.attnums(entry.oid, entry.version) for entry in ours}
    return strange_label(ctx.landing, files, now, set(checks)) if files else None


def _end_checks(ctx: Context, conn: SourceSession, record: TableRecord, upto: Lsn) -> None:
    """Forget the enums that no later window can bring under another label: not before what was open then has ended."""
    accepted = record.accepted
    ended = [each for each in accepted.questions if each.asks == "label" and each.through <= upto]
    found = slot.read_slot(conn, ctx.pipeline.slot) if ended else None
    ended = [each for each in ended if found and found.restart and each.through <= found.restart]
    if ended:
        waiting = tuple(each for each in accepted.questions if each not in ended)
        apply(ctx, record, Plan(record.columns), replace(accepted, questions=waiting))


def _copied_since(ctx: Context, record: TableRecord, upto: Lsn) -> bool:
    """Return whether the table's copy was taken after the window: then it holds what the window lacks."""
    copies = ctx.ledger.loads.copies(ctx.name)
    return any(each.copy_id == record.copy_id and each.oid == record.oid and upto <= each.lsn for each in copies)
