"""What is read of a scratch database before and after a migration, as the next capture would find and leave the source.

That is its catalog, after the publication has followed the patterns, and what the source's event trigger would log: here it writes a
table instead of the WAL.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.flow.context import Context
from penstock.flow.schema.publication import Alteration, decide
from penstock.flow.schema.questions import ask_for_values
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.ddl_log import read_rewrites
from penstock.shapes.ddl_message import DdlLog, read_text
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.mirror_column import column_plan
from penstock.shapes.plan import Plan
from penstock.shapes.reads import leaves_to_inspect
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import Policy
from penstock.shapes.timeline import History
from penstock.source import catalog_snapshot, ddl_trigger, leaf_rows, publication
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.session import SourceSession


def take_snapshot(
    ctx: Context, conn: SourceSession, hindrance: str | None = None
) -> tuple[CatalogSnapshot, Alteration | None]:
    """Read the catalog, after the publication follows the patterns as it does at the source: not where a `hindrance` is there.

    With it comes what the patterns made of the publication. Raises SourceError.
    """
    found = _read(ctx, conn)
    alteration = decide(ctx.pipeline, found, on_standby=False)
    if alteration is None:
        return found, None
    name, alteration = ctx.pipeline.publication, replace(alteration, blocker=alteration.blocker or hindrance)
    if alteration.blocker is None and alteration.missing:
        publication.add(conn, name, alteration.missing)
    if alteration.blocker is None and alteration.extra:
        publication.alter(conn, publication.remove_statement(name, alteration.extra))
    return _read(ctx, conn) if alteration.tables else found, alteration


def left_to_owner(ctx: Context, before: Alteration | None, after: Alteration | None) -> list[str]:
    """Say what the publication's owner has to run after the migration and did not have to before."""
    name = ctx.pipeline.publication
    known, steps = (each.statements(name) if each and each.blocker else "" for each in (before, after))
    if after is None or steps in ("", known):
        return []
    return [f"Penstock may not alter publication {name} ({after.blocker}): its owner runs {steps}"]


def blank(place: Connection, before: CatalogSnapshot, after: CatalogSnapshot) -> frozenset[int]:
    """Name the partitions that the migration made, and that had no row when they were attached; raises SourceError."""
    there = {relation.oid for relation in before.relations}
    found = set[int]()
    for table in before.tables:
        now = after.by_oid.get(table.oid)
        if now is None:
            continue
        possible = leaves_to_inspect(tuple(map(column_plan, table.columns)), table.shape, now)
        if new := [each for each in possible.arrived if each.leaf.oid not in there]:
            with leaf_rows.looking(place, what="trial") as rows:
                found |= {each.leaf.oid for each in new if rows.empty_in(each.leaf)}
    return frozenset(found)


def differences(source: Iterable[SourceTable], scratch: Iterable[SourceTable]) -> Iterator[str]:
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
    """Return what is compared of each column: oids and attnums are the database's own."""
    facts = attrgetter("type.schema", "type.name", "type.typmod", "not_null", "key", "generated", "identity")
    return {column.name: facts(column) for column in table.columns}


@dataclass(frozen=True, slots=True)
class TriedLog:
    """Hold what the source's event trigger would log of a migration, and its generation, None where it may miss commands."""

    generation: str | None = None
    ddl: DdlLog = field(default_factory=DdlLog)

    def plan(self, record: TableRecord, tables: Sequence[SourceTable], policy: Policy, decided: Plan) -> Plan:
        """Return the plan where the log says that a rewrite has kept all values, else as it was decided.

        `tables` are those of the two looks.
        """
        case = ask_for_values(record, tables[-1], policy, frozenset(), here=Lsn(0))
        if case is None:
            return decided
        found = [replace(KnownShape.of(table.shape), generation=self.generation) for table in tables]
        history = History(found).within(self.ddl.shapes.get(record.oid, ()), self.ddl.gaps, complete=True)
        kept = read_rewrites(history, case.before(), case.versions()) == "kept"
        # partitions here have no row that could show more than the log
        files = case.now.kind != "p" or all(case.rewrites(self.ddl, self.generation).values())
        return case.best() if kept and files else decided


def listen(ctx: Context, conn: SourceSession) -> tuple[str | None, list[str]]:
    """Install the event trigger in the scratch database where the source has it; return its token, and what to know."""
    if not ctx.pipeline.source.ddl_trigger:
        return None, []
    try:
        ddl_trigger.record(conn)
    except SourceError as error:
        return None, [f"tried as without the event trigger, which the scratch database did not take: {error.message}"]
    return ddl_trigger.read_trigger(conn).token, []


def read_log(conn: SourceSession, generation: str | None) -> TriedLog:
    """Read what was logged since `listen`; raises SourceError."""
    if generation is None or ddl_trigger.read_trigger(conn).token != generation:
        return TriedLog()
    ddl = DdlLog()
    for content in ddl_trigger.recorded(conn):
        ddl.add(read_text(content))
    return TriedLog(generation, ddl)


def _read(ctx: Context, conn: SourceSession) -> CatalogSnapshot:
    return catalog_snapshot.read_catalog(conn, ctx.pipeline.publication, patterns=ctx.pipeline.tables)
