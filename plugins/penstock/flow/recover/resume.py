"""Resume: end a halt or a pause after its repair, once a look says that the cause is gone.

A halt is looked at as capture looks, with the same proof that the source is the one that was read; a pause as the catalog
and the landed files allow. What only a merge can find out is left to the next one, which pauses the table again.
"""

from collections.abc import Callable, Iterator, Mapping

from penstock.compare.lake_reader import lake_reader
from penstock.conditions import needs_copy, runbook
from penstock.contract.manifest import FileEntry
from penstock.errors import ConfigError, LakeError
from penstock.flow.capture import run as capture
from penstock.flow.context import Context
from penstock.flow.guards import slot_work, tables_by_name
from penstock.flow.health import alarms
from penstock.flow.load.replay_request import saw
from penstock.flow.merge import lake_state
from penstock.flow.merge.table_plan import landed_relations
from penstock.flow.schema.publication import kinds_text, publishing_of
from penstock.flow.schema.run import added_only
from penstock.ledger.records import PipelineRecord
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.plan import plan
from penstock.source import publication, session
from penstock.source.catalog_snapshot import read_catalog

_LANDING = ("landing-file-missing", "landing-version")


def resume(ctx: Context) -> None:
    """Let a halted pipeline continue from where it was, and close the alarms of errors that a person was to fix.

    Where there is nothing to end it says so. Raises the error that would halt it again.
    """
    record = ctx.ledger.pipelines.get(ctx.name)
    if record.state == "halted":
        _require_repaired(ctx, record)
    answered = alarms.close_paged(ctx)
    if answered:
        ctx.progress("closed the alarms that tasks have opened; what is still there opens them again")
    if record.state != "halted":
        if not answered:
            ctx.progress(
                f"nothing to resume: {ctx.name} is {record.state}, not halted, and no task has opened an alarm."
            )
        return
    ctx.ledger.pipelines.resume(ctx.name)
    ctx.progress(f"resumed {ctx.name}, halted by {record.halted_slug}")


def resume_table(ctx: Context, table: str) -> None:
    """Take a paused table, given as `schema.table`, back into merges.

    One that is not paused is left as it is. Raises LakeError("schema-change" | "target-clash" | "foreign-commit") with the reason when
    it is still there.
    """
    known = tables_by_name(ctx.ledger.tables.all(ctx.name))
    if table not in known:
        raise ConfigError("config-invalid", f"expected one of the tables {sorted(known)}, got {table}")
    record = known[table]
    if record.state != "paused":
        ctx.progress(f"nothing to resume: {table} is {record.state}, not paused.")
        return
    reason = _reason(ctx, record)
    if reason is not None:
        slug = record.paused_slug or ""
        raise LakeError(
            slug,
            f"expected the cause for which {table} was paused to be gone, but {reason}; "
            f"follow {runbook(slug)}, then resume it",
        )
    ctx.ledger.tables.resume(ctx.name, record.oid)
    ctx.progress(f"resumed {table}, paused by {record.paused_slug}")


def _require_repaired(ctx: Context, record: PipelineRecord) -> None:
    if record.position is None:  # halted before it had a slot: bootstrap or recovery looks again
        return
    timeout = ctx.pipeline.capture.statement_timeout
    with (
        session.connect(ctx.source, what=f"{ctx.name}:resume", statement_timeout=timeout) as conn,
        slot_work(ctx),
    ):
        known = record.with_slot()
        capture.heal(ctx, conn, known)
    if record.halted_slug == "wal-unreadable" and (unread := capture.unreadable(ctx, known)):
        raise unread
    if record.halted_slug in lake_state.SLUGS and (problem := lake_state.problem(ctx)):
        raise problem
    if record.halted_slug in _LANDING:
        queue = ctx.ledger.merges.to_merge(ctx.name)
        loads = {load.oid: load for load in queue.rebuilds}
        due = [entry for table in queue.tables for entry in queue.files(table)]
        due += [entry for window in queue.windows for entry in window.files if entry.oid in loads]
        due += [entry for load in loads.values() if load.through_lsn is None for entry in load.files]
        for entry in due:
            ctx.landing.rows(entry.path)


def _reason(ctx: Context, record: TableRecord) -> str | None:
    """Say what speaks against taking a table back: what stopped it, or what happened since while no window looked at it.

    The next look could take that for harmless: it asks whether rows are older than the last look of the pipeline, and that one passed a
    paused table by.
    """
    checks = (_uncopied, _skipped, *_CAUSES.get(record.paused_slug or "", ()), _changed, _reshaped)
    return next((reason for check in checks if (reason := check(ctx, record))), None)


def _uncopied(ctx: Context, record: TableRecord) -> str | None:
    begun = record.paused_from_state in ("new", "copying") and record.joined_lsn is None
    if begun and ctx.ledger.pipelines.get(ctx.name).state == "running":
        return "it has no whole copy, and bootstrap is over: resync it instead"
    return None


def _skipped(ctx: Context, record: TableRecord) -> str | None:
    """Say that its copy lacks a transaction that was left out, whatever has stopped it since."""
    skipped = [each for each in ctx.ledger.windows.skipped(ctx.name) if record.oid in each.oids]
    copies = [each for each in ctx.ledger.loads.copies(ctx.name) if each.oid == record.oid] if skipped else []
    present = next((each for each in copies if each.copy_id == record.copy_id), None)
    lacks = (
        record.paused_slug == "transaction-skipped"
        if present is None
        else not all(saw(present, each) for each in skipped)
    )
    return "only a new copy has the rows of a transaction that was left out" if lacks else None


def _withheld(ctx: Context, _: TableRecord) -> str | None:
    """Say what the publication does not send; whether anything was left out before, only the person knows."""
    with session.connect(ctx.source, what=f"{ctx.name}:resume") as conn:
        found = publication.read_publication(conn, ctx.pipeline.publication)
    if found is None:
        return f"publication {ctx.pipeline.publication} does not exist"
    known = ctx.ledger.pipelines.get(ctx.name).publishing
    withheld = publishing_of(found, known, ctx.pipeline.source.publish).withheld
    return f"publication {ctx.pipeline.publication} does not send {kinds_text(withheld)}" if withheld else None


def _changed(ctx: Context, record: TableRecord) -> str | None:
    """Say what a copy would have to bring; where that is not what has stopped the table, it came on top."""
    if record.left_lsn is not None:
        return None
    with session.connect(ctx.source, what=f"{ctx.name}:resume") as conn:
        now = read_catalog(conn, ctx.pipeline.publication).by_oid.get(record.oid)
    reason = plan(record, now, policy=added_only(ctx, now)).reason
    return f"meanwhile {reason}: resync it instead" if reason and not needs_copy(record.remedy) else reason


def _reshaped(ctx: Context, record: TableRecord) -> str | None:
    """Say why files that are landed and due do not fit; a table that is yet to be copied needs none of them."""
    if record.paused_from_state != "ready":
        return None
    known = landed_relations(ctx)
    fits = (known.fit(record, entry, window) for window, entry in _due(ctx, record))
    return next((fit.reason for fit in fits if fit.reason is not None), None)


def _due(ctx: Context, record: TableRecord) -> Iterator[tuple[Lsn, FileEntry]]:
    for window in ctx.ledger.windows.all(ctx.name, after=record.complete_through or Lsn(0)):
        yield from ((window.from_lsn, entry) for entry in window.files if entry.oid == record.oid)


def _foreign(ctx: Context, record: TableRecord) -> str | None:
    """Say whose commit is the lake table's newest; compactions since ours do not count."""
    with lake_reader(ctx.pipeline.lake.catalog, ctx.catalog) as lake:
        found = lake.table(record.target)
    if found is None:
        return "the lake has no such table"
    if not found.is_ours(record.snapshot_id):
        return f"its main is not at our snapshot {record.snapshot_id}"
    return None


_CAUSES: Mapping[str, tuple[Callable[[Context, TableRecord], str | None], ...]] = {
    "foreign-commit": (_foreign,),
    "publication-changed": (_withheld,),
}
"""What shows whether the cause of a pause is there still, where neither catalog nor landed files do."""
