"""Bootstrap: from an empty ledger to tables that are copied and ready for their first cut.

Every step looks at what is already there, so it may be killed anywhere and run again. The slot's exported snapshot
lives as long as its connection: tables that were not copied under it are copied under a snapshot of their own,
and the merge drops exactly the staged changes which that snapshot had already seen. A table that cannot be copied is
paused, and the others continue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from penstock.errors import LakeError, PenstockError, SourceError, Trouble
from penstock.flow import landing_mark, table_status
from penstock.flow.context import Context
from penstock.flow.load.blockers import why_no_copy
from penstock.flow.load.spark_copy import TRIES, copied_files, copy_tables, passes, tables_at
from penstock.flow.load.watch import Earlier
from penstock.flow.schema import publication_options
from penstock.flow.schema.names import table_facts
from penstock.flow.spark_job import Submit
from penstock.ledger import new_attempt
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.source_table import SourceTable
from penstock.source import publication, server_info, session, slot
from penstock.source.publication import PublicationFacts
from penstock.source.slot import Exported
from penstock.units import several

UNCOPIED = ("new", "copying")
_NAMED = 5
_KILLED_RUN_SECONDS = 5  # in which the ledger's server notices that a run was killed


def prepare(ctx: Context) -> str:
    """Migrate the ledger, register the pipeline, create or adopt its publication; return the publication's name."""
    ctx.ledger.migrate()
    with _alone(ctx), session.connect(ctx.source, what=f"{ctx.name}:bootstrap") as conn:
        ctx.ledger.pipelines.register(
            ctx.name,
            database=server_info.read_server(conn).database,
            slot=ctx.pipeline.slot,
            publication=ctx.pipeline.publication,
        )
        ctx.ledger.pipelines.take_place(ctx.name, ctx.pipeline.lake_place)
        landing_mark.ensure(ctx)
        publication.ensure(conn, ctx.pipeline)
    return ctx.pipeline.publication


def copy(ctx: Context, submit: Submit) -> list[str]:
    """Copy every table that has no copy yet; create the slot first if there is none. Return the tables copied.

    The snapshot's connection stays open while Spark reads. Tables that were finished before an error stay
    finished; one that cannot be read is paused. Raises SourceError, LakeError, LedgerError, "work-under-way" while another
    bootstrap is at work.
    """
    with _alone(ctx):
        landing_mark.ensure(ctx)
        return _copy_all(ctx, submit)


def _alone(ctx: Context) -> AbstractContextManager[None]:
    """Keep another bootstrap from making the same slot and copying the same tables; raises LedgerError("work-under-way")."""
    return ctx.ledger.locks.hold(ctx.name, "first copy", wait=_KILLED_RUN_SECONDS)


def _copy_all(ctx: Context, submit: Submit) -> list[str]:
    _collect(ctx)
    tried: dict[int, str] = {}
    failures: Mapping[int, PenstockError] = {}
    for tries_left in reversed(range(TRIES)):
        again = ctx.ledger.pipelines.get(ctx.name).position is not None
        if again and not _uncopied(ctx):
            break
        with _snapshot(ctx) as exported:
            sources = tables_at(ctx, exported, sizes=True)
            tables = [table for table in _uncopied(ctx) if table.oid in sources]
            if not tables:  # they were dropped, or left the publication: the first capture notes it
                break
            if again:
                ctx.progress(_why_again(ctx, tables, failures))
            tried |= {table.oid: table.qualified for table in tables}
            failures = _copy(ctx, exported, [sources[table.oid] for table in tables], submit)
        _give_up(ctx, {oid: error for oid, error in failures.items() if not (tries_left and passes(error))})
    ctx.ledger.pipelines.finish_bootstrap(ctx.name)
    copied = {table.oid for table in ctx.ledger.tables.all(ctx.name) if table.state == "copied"}
    return [name for oid, name in tried.items() if oid in copied]


def _why_again(ctx: Context, tables: Sequence[TableRecord], failures: Mapping[int, PenstockError]) -> str:
    """Say how much of the work is done, and why the rest begins again."""
    met = [str(failures[table.oid]) for table in tables if table.oid in failures]
    why = "; ".join(met) or "the try before ended, and the snapshot that it held with it"
    names = ", ".join(table.qualified for table in tables[:_NAMED]) + (", ..." if len(tables) > _NAMED else "")
    done = _earlier(ctx).tables
    return f"{done} of {several(done + len(tables), 'table')} copied; the other {len(tables)} ({names}) under a snapshot of their own: {why}"


def _earlier(ctx: Context) -> Earlier:
    """Return what earlier tries have copied."""
    whole = {(table.oid, table.copy_id) for table in ctx.ledger.tables.all(ctx.name) if table.state == "copied"}
    copies = [each for each in ctx.ledger.loads.copies(ctx.name, state="landed") if (each.oid, each.copy_id) in whole]
    return Earlier(len(copies), sum(len(each.files) for each in copies), sum(each.rows for each in copies))


@contextmanager
def _snapshot(ctx: Context) -> Iterator[Exported]:
    """Hold a snapshot to copy under: the new slot's own, or a later one for what that could not finish."""
    if ctx.ledger.pipelines.get(ctx.name).position is None:
        left_over = _left_over(ctx)
        if left_over is None:
            _intend(ctx, made=True)
            timeout = ctx.pipeline.source.slot_timeout
            with slot.create_exporting(ctx.source, ctx.pipeline.slot, timeout=timeout) as exported:
                _record(ctx, exported, exported.lsn)
                yield exported
            return
        with slot.export_snapshot(ctx.source) as exported:
            _record(ctx, exported, left_over)
            yield exported
        return
    with slot.export_snapshot(ctx.source) as exported:
        yield exported


def _left_over(ctx: Context) -> Lsn | None:
    """Return the position of a slot that is ours already: adopted, or made by a run that died before it said so."""
    intended = ctx.ledger.pipelines.get(ctx.name).slot_intent_at is not None
    with session.connect(ctx.source, what=f"{ctx.name}:bootstrap") as conn:
        found = slot.read_slot(conn, ctx.pipeline.slot)
    if found is None:
        return None
    if not intended and not ctx.pipeline.source.adopt:
        raise SourceError(
            "slot-exists",
            f"expected no slot named {found.name} before bootstrap, found one of plugin {found.plugin}; "
            "drop it, choose another name, or set source.adopt to take it over",
        )
    if not intended:
        _intend(ctx, made=False)
    if found.active and found.confirmed is None:
        raise SourceError(
            "slot-in-use",
            f"expected slot {found.name} to be finished, but process {found.active_pid} of the source still makes it, "
            "for a run that is still at work or was killed; it waits for open transactions: end them or wait, then run again",
        )
    if found.confirmed is None or found.plugin != "pgoutput":
        raise SourceError(
            "slot-unusable", f"expected slot {found.name} to be a readable pgoutput slot, got plugin {found.plugin}"
        )
    return found.confirmed


def _intend(ctx: Context, *, made: bool) -> None:
    """Write down that a slot is about to be made or adopted, so that a slot found after a crash is known to be ours."""
    with session.connect(ctx.source, what=f"{ctx.name}:bootstrap") as conn:
        server = server_info.read_server(conn)
        published = _publication(ctx, conn)
        publication_options.begin(ctx, published)
        ctx.ledger.pipelines.intend_slot(
            ctx.name,
            system_identifier=server.system_identifier,
            timeline=server.timeline,
            database=server.database,
            publication_oid=published.oid,
            made=made,
        )


def _publication(ctx: Context, conn: session.SourceSession) -> PublicationFacts:
    name = ctx.pipeline.publication
    found = publication.read_publication(conn, name)
    if found is None:
        raise SourceError("publication-missing", f"expected publication {name} before its slot is made, found none")
    return found


def _record(ctx: Context, exported: Exported, position: Lsn) -> None:
    """Write tables and slot into the ledger: from here the pipeline has a position.

    The tables are as the snapshot sees them, so the first capture notices whatever changed since.
    """
    tables = tables_at(ctx, exported)
    with session.connect(ctx.source, what=f"{ctx.name}:bootstrap") as conn:
        time = server_info.position(conn).time
    ctx.ledger.tables.save(ctx.name, [table_facts(ctx, table) for table in tables.values()])
    ctx.ledger.pipelines.record_slot(ctx.name, consistent_point=position, source_time=time)
    ctx.progress(f"slot {ctx.pipeline.slot} is consistent at {position}; {several(len(tables), 'table')} to copy")


def _uncopied(ctx: Context) -> list[TableRecord]:
    """List what bootstrap copies: not tables that joined since the slot was made, whose copies have a rule of their own."""
    return [table for table in ctx.ledger.tables.all(ctx.name) if table.state in UNCOPIED and table.joined_lsn is None]


def _copy(
    ctx: Context, exported: Exported, sources: Sequence[SourceTable], submit: Submit
) -> Mapping[int, PenstockError]:
    """Copy these tables under one snapshot; return why some could not be, by oid."""
    refused = _blocked(ctx, sources) | _save(ctx, sources)
    chosen = [table for table in sources if table.oid not in refused]
    if not chosen:
        return refused
    copy_id, earlier = new_attempt(), _earlier(ctx)
    ctx.ledger.loads.start_copy(
        ctx.name, copy_id=copy_id, snapshot=exported.snapshot, lsn=exported.lsn, oids=[table.oid for table in chosen]
    )
    try:
        return refused | copy_tables(ctx, exported, copy_id, chosen, submit, earlier=earlier)
    finally:
        _collect(ctx)


def _blocked(ctx: Context, sources: Sequence[SourceTable]) -> dict[int, PenstockError]:
    """Return the tables that would differ again after their copy; the preflight of a new pipeline refuses them."""
    with session.connect(ctx.source, what=f"{ctx.name}:bootstrap") as conn:
        events = _publication(ctx, conn)
    found = ((table.oid, why_no_copy(table, events, joining=True)) for table in sources)
    return {oid: error for oid, error in found if error}


def _save(ctx: Context, sources: Sequence[SourceTable]) -> dict[int, PenstockError]:
    """Note what the tables look like in the snapshot; return those whose new name would be another table's target."""
    facts = [table_facts(ctx, table) for table in sources]
    with suppress(LakeError):  # then one of them after the other, to know which
        ctx.ledger.tables.save(ctx.name, facts)
        return {}
    refused: dict[int, PenstockError] = {}
    with ctx.ledger.session():
        for each in facts:
            try:
                ctx.ledger.tables.save(ctx.name, [each])
            except LakeError as error:
                refused[each.oid] = error
    return refused


def _give_up(ctx: Context, failures: Mapping[int, PenstockError]) -> None:
    """Pause the tables that cannot be copied now: none of them keeps the others waiting."""
    known = {table.oid: table for table in ctx.ledger.tables.all(ctx.name)}
    for oid, error in failures.items():
        reason = f"{known[oid].qualified} could not be copied: {error} Follow {error.runbook}, then resync the table"
        table_status.stop(ctx, known[oid], Trouble("copy-failed", reason, "copy"))


def _collect(ctx: Context) -> None:
    """Record the tables whose copy is proved by its result file, whatever became of the run that made it."""
    ours = {(table.oid, table.copy_id): table.qualified for table in ctx.ledger.tables.all(ctx.name)}
    with ctx.ledger.session():
        for copying in ctx.ledger.loads.copies(ctx.name, state="copying"):
            if (copying.oid, copying.id) not in ours:  # a rebuild's, which is none of the bootstrap's business
                continue
            files = copied_files(ctx, copying.id, copying.oid, ours[copying.oid, copying.id])
            if files is not None:
                ctx.ledger.loads.finish_copy(ctx.name, copy_id=copying.id, oid=copying.oid, files=files)
