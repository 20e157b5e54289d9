"""Bootstrap: from an empty ledger to tables that are copied and ready for their first cut.

Every step looks at what is already there, so it may be killed anywhere and run again. The slot's exported snapshot
lives as long as its connection: tables that were not copied under it are copied under a snapshot of their own,
and the merge drops exactly the staged changes which that snapshot had already seen. A table that cannot be copied is
paused, and the others continue.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from penstock.contract.manifest import FileEntry
from penstock.errors import LakeError, PenstockError, SourceError, Trouble
from penstock.flow import landing_mark, table_status
from penstock.flow.context import Context
from penstock.flow.load.read import Reads, catalog_at, read_tables
from penstock.flow.load.spark_copy import Earlier, ReadRequest
from penstock.flow.load.waiting import why_no_copy
from penstock.flow.schema.names import table_facts
from penstock.flow.schema.publication import publishing_of
from penstock.flow.spark_job import Submit
from penstock.jobs.pointers import aside
from penstock.ledger.loads import NewRead
from penstock.ledger.table_records import LoadRecord, LoadState, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.source_table import SourceTable
from penstock.source import publication, server_info, session, slot
from penstock.source.catalog_snapshot import CatalogSnapshot
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
        copies = _FirstCopies(ctx)
        _give_up(ctx, read_tables(ctx, copies, submit))
        ctx.ledger.pipelines.finish_bootstrap(ctx.name)
        copied = {table.oid for table in ctx.ledger.tables.all(ctx.name) if table.state == "copied"}
        return [name for oid, name in copies.tried.items() if oid in copied]


def _alone(ctx: Context) -> AbstractContextManager[None]:
    """Keep another bootstrap from making the same slot and copying the same tables; raises LedgerError("work-under-way")."""
    return ctx.ledger.locks.hold(ctx.name, "first copy", wait=_KILLED_RUN_SECONDS)


class _FirstCopies(Reads):
    """Copy what has no copy yet; `tried` are the names of the tables that this run has copied or wanted to, by oid."""

    seen_by_capture = True

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx)
        self.tried: dict[int, str] = {}
        self._gone: set[int] = set()
        self._again = False

    def waits(self, but: Collection[int]) -> bool:
        """Return whether there is no slot yet, or a table to copy."""
        self._again = self.ctx.ledger.pipelines.get(self.ctx.name).position is not None
        return not self._again or bool({table.oid for table in _uncopied(self.ctx)} - self._gone - set(but))

    @contextmanager
    def snapshot(self) -> Iterator[Exported]:
        """Hold the new slot's own snapshot, or a later one for what that could not finish."""
        ctx = self.ctx
        left_over = None if self._again else _left_over(ctx)
        if self._again or left_over is not None:
            with slot.export_snapshot(ctx.source) as exported:
                if left_over is not None:
                    _record(ctx, exported, left_over)
                yield exported
            return
        timeout = ctx.pipeline.source.slot_timeout
        with slot.create_exporting(ctx.source, ctx.pipeline.slot, timeout=timeout) as exported:
            _record(ctx, exported, exported.lsn)
            yield exported

    def requests(
        self, found: CatalogSnapshot, but: Collection[int]
    ) -> tuple[Sequence[ReadRequest], Mapping[int, PenstockError]]:
        """Return the tables to copy; those that were dropped, or left the publication, are left to the first capture."""
        ctx, sources = self.ctx, found.by_oid
        uncopied = [table for table in _uncopied(ctx) if table.oid not in but]
        self._gone |= {table.oid for table in uncopied} - sources.keys()
        tables = [table for table in uncopied if table.oid in sources]
        if self._again and tables:
            ctx.progress(_why_again(ctx, tables, self.failed))
        self.tried |= {table.oid: table.qualified for table in tables}
        chosen = [sources[table.oid] for table in tables]
        refused = _blocked(ctx, chosen, found.publication) | _save(ctx, chosen)
        targets = {table.oid: table.target for table in tables}
        fresh = [table for table in chosen if table.oid not in refused]
        namespace, era = ctx.pipeline.namespace, ctx.ledger.pipelines.get(ctx.name).era
        # no reader sees the table that a copy is loaded into before it takes its name in a cut
        return [ReadRequest(t, NewRead(t.oid, place=aside(namespace, targets[t.oid], era))) for t in fresh], refused

    def unlanded(self) -> Sequence[LoadRecord]:
        """Return what is being copied for the first time; a rebuild's copy is none of the bootstrap's business."""
        return _first_copies(self.ctx, "copying")

    def land(self, load: LoadRecord, files: Sequence[FileEntry], _now: SourceTable | None) -> PenstockError | None:
        self.ctx.ledger.loads.finish_copy(self.ctx.name, copy_id=load.copy_id, oid=load.oid, files=files)
        return None

    def earlier(self) -> Earlier:
        return _earlier(self.ctx)


def _why_again(ctx: Context, tables: Sequence[TableRecord], failures: Mapping[int, PenstockError]) -> str:
    """Say how much of the work is done, and why the rest begins again."""
    met = [str(failures[table.oid]) for table in tables if table.oid in failures]
    why = "; ".join(met) or "the try before ended, and the snapshot that it held with it"
    names = ", ".join(table.qualified for table in tables[:_NAMED]) + (", ..." if len(tables) > _NAMED else "")
    done = _earlier(ctx).tables
    return f"{done} of {several(done + len(tables), 'table')} copied; the other {len(tables)} ({names}) under a snapshot of their own: {why}"


def _earlier(ctx: Context) -> Earlier:
    """Return what earlier tries have copied."""
    copies = _first_copies(ctx, "ready")
    return Earlier(len(copies), sum(len(each.files) for each in copies), sum(each.rows for each in copies))


def _first_copies(ctx: Context, state: LoadState) -> list[LoadRecord]:
    return [each for each in ctx.ledger.loads.copies(ctx.name, state=state) if each.cause == "first"]


def _left_over(ctx: Context) -> Lsn | None:
    """Return the position of a slot that is ours already: adopted, or made by a run that died before it said so.

    Where there is none, it is written down that one is about to be made.
    """
    intended = ctx.ledger.pipelines.get(ctx.name).slot_intent_at is not None
    with session.connect(ctx.source, what=f"{ctx.name}:bootstrap") as conn:
        found = slot.read_slot(conn, ctx.pipeline.slot)
        if found is not None and not intended and not ctx.pipeline.source.adopt:
            raise SourceError(
                "slot-exists",
                f"expected no slot named {found.name} before bootstrap, found one of plugin {found.plugin}; "
                "drop it, choose another name, or set source.adopt to take it over",
            )
        if found is None or not intended:
            _intend(ctx, conn, made=found is None)
    if found is None:
        return None
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


def _intend(ctx: Context, conn: session.SourceSession, *, made: bool) -> None:
    """Write down that a slot is about to be made or adopted, so that a slot found after a crash is known to be ours."""
    server = server_info.read_server(conn)
    published = publication.read_publication(conn, ctx.pipeline.publication)
    if published is None:
        raise _unpublished(ctx)
    # before the slot is made: that is what the tables' lake is promised
    promised = publishing_of(published, None, ctx.pipeline.source.publish)
    ctx.ledger.pipelines.note_publishing(ctx.name, promised)
    ctx.ledger.pipelines.intend_slot(
        ctx.name,
        system_identifier=server.system_identifier,
        timeline=server.timeline,
        database=server.database,
        publication_oid=published.oid,
        made=made,
    )


def _record(ctx: Context, exported: Exported, position: Lsn) -> None:
    """Write tables and slot into the ledger: from here the pipeline has a position.

    The tables are as the snapshot sees them, so the first capture notices whatever changed since.
    """
    tables = catalog_at(ctx, exported, sizes=False).tables
    with session.connect(ctx.source, what=f"{ctx.name}:bootstrap") as conn:
        time = server_info.position(conn).time
    ctx.ledger.tables.save(ctx.name, [table_facts(ctx, table) for table in tables])
    ctx.ledger.pipelines.record_slot(ctx.name, consistent_point=position, source_time=time)
    ctx.progress(f"slot {ctx.pipeline.slot} is consistent at {position}; {several(len(tables), 'table')} to copy")


def _uncopied(ctx: Context) -> list[TableRecord]:
    """List what bootstrap copies: not tables that joined since the slot was made, whose copies have a rule of their own."""
    return [table for table in ctx.ledger.tables.all(ctx.name) if table.state in UNCOPIED and table.joined_lsn is None]


def _unpublished(ctx: Context) -> SourceError:
    name = ctx.pipeline.publication
    return SourceError("publication-missing", f"expected publication {name} before its slot is made, found none")


def _blocked(ctx: Context, sources: Sequence[SourceTable], events: PublicationFacts | None) -> dict[int, PenstockError]:
    """Return the tables that would differ again after their copy; the preflight of a new pipeline refuses them."""
    if events is None:
        raise _unpublished(ctx)
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
