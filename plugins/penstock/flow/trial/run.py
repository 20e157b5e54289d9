"""Try a migration before it is run: on a scratch database with the source's schema, looked at as capture looks at the source.

Nothing is changed at the source, in the ledger or in the lake. What is decided of the two snapshots is in `outcomes.py`.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path

from penstock.config.connections import Connection
from penstock.errors import ConfigError, LedgerError, SourceError
from penstock.flow.context import Context
from penstock.flow.trial import snapshots
from penstock.flow.trial.outcomes import PIPELINE, Migration, TableOutcome, outcomes
from penstock.ledger.table_records import LoadRecord
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import Outcome, worst
from penstock.source import catalog_snapshot, publication, server_info, session
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.preflight.findings import names
from penstock.source.scratch import database, programs
from penstock.source.scratch import files as scratch_files
from penstock.source.scratch.database import Needs
from penstock.source.scratch.programs import Programs, unavailable
from penstock.source.server_info import ServerFacts


@dataclass(frozen=True, slots=True)
class Scratch:
    """Say where the schema comes from and where it is built: ids of connections, files, and a folder of programs.

    Without `connection` a server of our own is started for the time; without `schema_files` the schema is dumped from the
    source, by `schema_connection` where the source's own role may not read every table.
    """

    connection: str | None = None
    schema_files: tuple[Path, ...] = ()
    schema_connection: str | None = None
    programs: Path | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """Hold what files mean for each table that they change, how many they leave alone, and on which servers that was seen.

    `sizes` are bytes at the source and `copies` the last ones, by table; `paused` are the tables that wait for one anyway.
    """

    files: tuple[str, ...]
    source: str | None
    scratch: str
    tables: tuple[TableOutcome, ...]
    unchanged: int
    sizes: Mapping[str, int]
    copies: Mapping[str, LoadRecord]
    paused: frozenset[str]
    notes: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        """Return what concerns most."""
        return worst([table.outcome for table in self.tables])


@dataclass(frozen=True, slots=True)
class _Source:
    """Hold what the source says of itself: its server, its tables, and what a migration may count on."""

    server: ServerFacts
    found: CatalogSnapshot
    needs: Needs

    @property
    def hindrance(self) -> str | None:
        """Say why Penstock may not alter the publication there, where it may in the scratch database."""
        if self.server.in_recovery:
            return "a standby cannot alter it"
        facts = self.found.publication
        return None if facts is None or facts.owned else "this role does not own it"

    @property
    def tables(self) -> tuple[SourceTable, ...]:
        return self.found.chosen if self.found.publication is None else self.found.tables


def try_files(ctx: Context, files: Sequence[Path], scratch: Scratch) -> Trial:
    """Try the files in their order, and say what follows for each table.

    Raises ConfigError("config-invalid" | "scratch-unavailable" | "migration-failed"), SourceError.
    """
    for file in (*files, *scratch.schema_files):
        scratch_files.require_file(file)
    source, notes = _source(ctx, scratch)
    needs, hindrance = (source.needs, source.hindrance) if source else (Needs(), None)
    major = source.server.major if source else scratch_files.dumped_from(scratch.schema_files)
    tools = programs.find(major, serves=None if scratch.connection else database.serves, folder=scratch.programs)
    connect = partial(session.connect, what=f"{ctx.name}:trial")
    with ExitStack() as stack:
        if scratch.connection is None:
            ctx.progress(f"starting a scratch server of PostgreSQL {tools.major} from {tools.folder}")
            place = stack.enter_context(database.throw_away(tools.folder))
        else:
            place = _named_server(ctx, scratch.connection, needs)
        ours = scratch.connection is None
        user, admin = stack.enter_context(database.scratch_database(place, needs, ours=ours))
        ctx.progress("building the source's schema in a scratch database")
        complaints = _build(ctx, scratch, tools, user)
        with connect(admin) as conn:
            token, said = snapshots.listen(ctx, conn)
        with connect(user) as conn:
            if publication.read_publication(conn, ctx.pipeline.publication) is None:
                publication.ensure(conn, ctx.pipeline)
            version = server_info.read_server(conn).version
            before, altered_before = snapshots.take_snapshot(ctx, conn, hindrance)
        notes += said
        notes += _checked(source, before, complaints, dumped=not scratch.schema_files)
        ctx.progress(f"running {', '.join(file.name for file in files)}")
        notes += [f"passed over: {error}" for error in scratch_files.run(tools, user, files)]
        with connect(user) as conn:
            after, altered = snapshots.take_snapshot(ctx, conn, hindrance)
            blank = snapshots.blank(user, before, after)
        with connect(admin) as conn:
            log = snapshots.read_log(conn, token)
    tables = outcomes(Migration(ctx, before, after, altered, blank, log))
    notes += snapshots.left_to_owner(ctx, altered_before, altered)
    copies, paused, unknown = _copies(ctx)
    return Trial(
        files=tuple(file.name for file in files),
        source=f"{ctx.source.host}:{ctx.source.port}/{ctx.source.database}, PostgreSQL {source.server.version}"
        if source
        else None,
        scratch=f"PostgreSQL {version}",
        tables=tuple(tables),
        unchanged=_unchanged(before, tables),
        sizes={table.qualified: table.bytes for table in (source.tables if source else ())},
        copies=copies,
        paused=paused,
        notes=(*notes, *unknown),
    )


def _unchanged(before: CatalogSnapshot, tables: Sequence[TableOutcome]) -> int:
    named = {table.table for table in tables}
    return 0 if PIPELINE in named else sum(table.qualified not in named for table in before.tables)


def _source(ctx: Context, scratch: Scratch) -> tuple[_Source | None, list[str]]:
    """Ask the source; with the schema in files, one that cannot be asked leaves sizes and the comparison out."""
    try:
        with session.connect(ctx.source, what=f"{ctx.name}:trial") as conn:
            found = _Source(
                server=server_info.read_server(conn),
                found=catalog_snapshot.read_catalog(
                    conn, ctx.pipeline.publication, patterns=ctx.pipeline.tables, sizes=True
                ),
                needs=database.read_needs(conn),
            )
    except (ConfigError, SourceError) as error:
        if not scratch.schema_files:
            raise
        return None, [f"the schema was not compared with the source, which could not be asked: {error.message}"]
    return found, []


def _named_server(ctx: Context, connection: str, source: Needs) -> Connection:
    """Return the server that was named, never the source's."""
    place = ctx.connections(connection)
    with session.connect(place, what=f"{ctx.name}:trial") as conn:
        if database.read_needs(conn).running == source.running:
            raise unavailable(
                f"expected connection {connection!r} to lead to another server than the source's, but it is the same one",
                "a migration may change roles and settings of a whole server: name another, or leave --scratch-connection out",
            )
    return place


def _build(ctx: Context, scratch: Scratch, tools: Programs, made: Connection) -> list[str]:
    if scratch.schema_files:
        return [said for file in scratch.schema_files for said in scratch_files.restore(tools, made, file)]
    place = ctx.connections(scratch.schema_connection) if scratch.schema_connection else ctx.reader
    with scratch_files.dumped(tools, place) as file:
        return scratch_files.restore(tools, made, file)


def _checked(source: _Source | None, before: CatalogSnapshot, complaints: Sequence[str], *, dumped: bool) -> list[str]:
    """Hold the scratch tables against the source's; return what to know, raise where a dump did not become the same."""
    wrong = list(snapshots.differences(source.tables, before.tables)) if source else []
    said = names(complaints)
    if wrong and dumped:
        because = f" The server said: {said}" if said else ""
        raise unavailable(
            f"expected the scratch database to have the source's tables, but {names(wrong)}.{because}",
            "give the scratch server what it lacks, an extension perhaps: name another by --programs or --scratch-connection",
        )
    notes = [f"the schema file is not what the source has: {names(wrong)}"] if wrong else []
    return [*notes, f"left out of the scratch database: {said}"] if said else notes


def _copies(ctx: Context) -> tuple[dict[str, LoadRecord], frozenset[str], list[str]]:
    """Ask the ledger for each table's last copy, and for paused tables; one that cannot be asked leaves figures out, and a note says so."""
    try:
        records = [record for record in ctx.ledger.tables.all(ctx.name) if record.state != "dropped"]
        done = [
            (copy.copied_at, copy)
            for copy in ctx.ledger.loads.copies(ctx.name)
            if copy.copied_at and copy.copy_started_at
        ]
    except (ConfigError, LedgerError) as error:
        return {}, frozenset(), [f"the ledger did not say what earlier copies took: {error.message}"]
    last = {copy.oid: copy for _, copy in sorted(done, key=itemgetter(0))}
    known = {record.qualified: last[record.oid] for record in records if record.oid in last}
    return known, frozenset(record.qualified for record in records if record.state == "paused"), []
