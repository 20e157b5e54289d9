"""Try a migration before it is run: on a scratch database with the source's schema, looked at as capture looks at the source.

Nothing is changed at the source, in the ledger or in the lake. What is decided of the two snapshots is in `outcomes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.config.connections import Connection
from penstock.errors import ConfigError, SourceError
from penstock.flow.context import Context
from penstock.flow.trial import ddl_log, snapshots
from penstock.flow.trial.copy_cost import Costs, costs
from penstock.flow.trial.outcomes import PIPELINE, Migration, TableOutcome, outcomes
from penstock.shapes.source_table import SourceColumn, SourceTable
from penstock.shapes.steps import Outcome, worst
from penstock.source import catalog_snapshot, publication, server_info, session
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.preflight.report import names
from penstock.source.scratch import database, migration, programs
from penstock.source.scratch.programs import Programs, unavailable
from penstock.source.scratch.server import throw_away
from penstock.source.server_info import ServerFacts
from penstock.source.session import SourceSession

_ENCODING = "UTF8"


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
    """Hold what files mean for each table that they change, how many they leave alone, and on which servers that was seen."""

    files: tuple[str, ...]
    source: str | None
    scratch: str
    tables: tuple[TableOutcome, ...]
    unchanged: int
    costs: Costs
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
    roles: tuple[str, ...]
    search_path: str | None
    extensions: tuple[tuple[str, str], ...]
    running: tuple[object, ...]

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
        database.require_file(file)
    source, notes = _source(ctx, scratch)
    major = source.server.major if source else database.dumped_from(scratch.schema_files)
    tools = programs.find(major, server=scratch.connection is None, folder=scratch.programs)
    with ExitStack() as stack:
        place = _server(ctx, scratch, tools, source, stack)
        encoding = source.server.encoding if source else _ENCODING
        path = source.search_path if source else None
        roles = None if scratch.connection else source.roles if source else ()
        made = stack.enter_context(database.scratch_database(place, encoding=encoding, search_path=path, roles=roles))
        ctx.progress("building the source's schema in a scratch database")
        database.make_extensions(made, source.extensions if source else ())
        complaints = _build(ctx, scratch, tools, made.user)
        with _session(ctx, made.admin) as conn:
            token, said = ddl_log.listen(ctx, conn)
        with _session(ctx, made.user) as conn:
            if publication.read_publication(conn, ctx.pipeline.publication) is None:
                publication.ensure(conn, ctx.pipeline)
            version = server_info.read_server(conn).version
            before = snapshots.take_snapshot(ctx, conn, source.hindrance if source else None)
        notes += said
        notes += _checked(source, before.found, complaints, dumped=not scratch.schema_files)
        ctx.progress(f"running {', '.join(file.name for file in files)}")
        tried = migration.run(tools, made.user, files)
        notes += [f"passed over: {error}" for error in tried.passed_over]
        with _session(ctx, made.user) as conn:
            after = snapshots.take_snapshot(ctx, conn, source.hindrance if source else None)
            blank = snapshots.blank(made.user, before.found, after.found)
        with _session(ctx, made.admin) as conn:
            log = ddl_log.read_log(conn, token)
    tables = outcomes(ctx, Migration(before.found, after.found, after.alteration, blank, log))
    notes += snapshots.left_to_owner(ctx, before, after)
    known = costs(ctx, source.tables if source else ())
    return Trial(
        files=tuple(file.name for file in files),
        source=f"{ctx.source.host}:{ctx.source.port}/{ctx.source.database}, PostgreSQL {source.server.version}"
        if source
        else None,
        scratch=f"PostgreSQL {version}",
        tables=tuple(tables),
        unchanged=_unchanged(before.found, tables),
        costs=known,
        notes=(*notes, *known.notes),
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
                roles=database.roles(conn),
                search_path=database.search_path(conn),
                extensions=database.extensions(conn),
                running=database.running_server(conn),
            )
    except (ConfigError, SourceError) as error:
        if not scratch.schema_files:
            raise
        return None, [f"the schema was not compared with the source, which could not be asked: {error.message}"]
    return found, []


def _server(ctx: Context, scratch: Scratch, tools: Programs, source: _Source | None, stack: ExitStack) -> Connection:
    """Return where the scratch database is made: on a server of our own, or on the one that was named, never the source's."""
    if scratch.connection is None:
        ctx.progress(f"starting a scratch server of PostgreSQL {tools.major} from {tools.folder}")
        return stack.enter_context(throw_away(tools))
    place = ctx.connections(scratch.connection)
    with _session(ctx, place) as conn:
        if source is not None and database.running_server(conn) == source.running:
            raise unavailable(
                f"expected connection {scratch.connection!r} to lead to another server than the source's, but it is the same one",
                "a migration may change roles and settings of a whole server: name another, or leave --scratch-connection out",
            )
    return place


def _build(ctx: Context, scratch: Scratch, tools: Programs, made: Connection) -> list[str]:
    if scratch.schema_files:
        return [said for file in scratch.schema_files for said in database.restore(tools, made, file)]
    place = ctx.connections(scratch.schema_connection) if scratch.schema_connection else ctx.reader
    with database.dumped(tools, place) as file:
        return database.restore(tools, made, file)


def _checked(source: _Source | None, before: CatalogSnapshot, complaints: Sequence[str], *, dumped: bool) -> list[str]:
    """Hold the scratch tables against the source's; return what to know, raise where a dump did not become the same."""
    wrong = list(_differences(source.tables, before.tables)) if source else []
    said = names(complaints)
    if wrong and dumped:
        because = f" The server said: {said}" if said else ""
        raise unavailable(
            f"expected the scratch database to have the source's tables, but {names(wrong)}.{because}",
            "give the scratch server what it lacks, an extension perhaps: name another by --programs or --scratch-connection",
        )
    notes = [f"the schema file is not what the source has: {names(wrong)}"] if wrong else []
    return [*notes, f"left out of the scratch database: {said}"] if said else notes


def _differences(source: Iterable[SourceTable], scratch: Iterable[SourceTable]) -> Iterator[str]:
    """Name what is otherwise in the scratch database, by table."""
    made = {table.qualified: table for table in scratch}
    for table in source:
        found = made.get(table.qualified)
        if found is None:
            yield f"{table.qualified} is missing"
            continue
        if (found.kind, found.identity) != (table.kind, table.identity):
            yield f"{table.qualified} has another kind or replica identity"
        here, there = _columns(found), _columns(table)
        yield from (f"{table.qualified}.{name} is missing" for name in there if name not in here)
        yield from (f"{table.qualified}.{name} is not at the source" for name in here if name not in there)
        yield from (
            f"{table.qualified}.{name} is otherwise" for name in there if name in here and here[name] != there[name]
        )


def _columns(table: SourceTable) -> dict[str, tuple[object, ...]]:
    return {column.name: _facts(column) for column in table.columns}


def _facts(column: SourceColumn) -> tuple[object, ...]:
    # oids and attnums are the database's own
    kind = column.type
    return (kind.schema, kind.name, kind.typmod, column.not_null, column.key, column.generated, column.identity)


@contextmanager
def _session(ctx: Context, place: Connection) -> Iterator[SourceSession]:
    with session.connect(place, what=f"{ctx.name}:trial") as conn:
        yield conn
