"""What a preflight asks of the source: every answer that a rule may need, read once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.config.model import Pipeline
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog_snapshot, ddl_trigger, refusals, server_info, slot
from penstock.source.catalog_snapshot import Privileges
from penstock.source.ddl_trigger import DdlTrigger
from penstock.source.patterns import Choice, choose
from penstock.source.publication import PublicationFacts
from penstock.source.refusals import Refusal
from penstock.source.server_info import OpenTransaction, ServerFacts
from penstock.source.session import SourceSession
from penstock.source.slot import SlotFacts

WANTED = {
    "lc_messages": (r"|C|POSIX|C\..*|en([_.].*)?|English.*", "English messages, by which errors are told apart"),
    "session_replication_role": ("origin", "origin"),
    "zero_damaged_pages": ("off", "off: damaged pages would be read as empty ones"),
    "ignore_checksum_failure": ("off", "off: damaged pages would be read as whole ones"),
}
"""Settings that only a superuser changes, so that our sessions cannot; what they have to be, and why."""


@dataclass(frozen=True, slots=True)
class Role:
    """Hold who a session is of and where it leads, what the role may do, and how many WAL senders are taken.

    `beyond` is what it may do besides reading tables.
    """

    name: str
    database: str
    started: str
    replication: bool
    create_in_database: bool
    senders: int
    beyond: Sequence[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """Hold the pipeline and all that the source answered.

    `ddl_trigger` is the event trigger, None where the pipeline does not ask for it. `reader` is the role that reads tables,
    None where the pipeline names none; `reads` is what it may do, or else our role. `unpinned` are settings that we may not
    change: role, name, value. `foreign` names what writes rows of another server, and the relation, None where that is not known.
    `own` is the pipeline's slot and `publication` its publication, if they exist; `own_slot` says that the slot is
    known to be ours. `wanted` are the tables that the patterns choose; `tables` those that are published, or would be.
    `refused` says by oid which of them refuse the application's updates or deletes once they are published.
    """

    pipeline: Pipeline
    schedule_seconds: int | None
    own_slot: bool
    server: ServerFacts
    role: Role
    slots: Sequence[SlotFacts]
    own: SlotFacts | None
    blockers: Sequence[OpenTransaction]
    publication: PublicationFacts | None
    choice: Choice
    wanted: Sequence[SourceTable]
    tables: Sequence[SourceTable]
    privileges: Sequence[Privileges]
    foreign: Sequence[tuple[str, int | None]] = ()
    ddl_trigger: DdlTrigger | None = None
    reader: Role | None = None
    reads: Sequence[Privileges] = ()
    unpinned: Sequence[tuple[str, str, str]] = ()
    refused: Mapping[int, Sequence[Refusal]] = field(default_factory=dict)

    @property
    def follows(self) -> bool:
        """Return whether capture may alter the publication, as far as that depends on the publication."""
        facts = self.publication
        ours = facts is not None and facts.owned and facts.made_for(self.pipeline.name)
        return ours and not self.server.in_recovery and not self.pipeline.source.adopt

    def staying(self) -> Iterator[SourceTable]:
        """Yield the tables that are published, or would be, without those that the next capture lets leave."""
        meant = {table.oid for table in self.wanted}
        return (table for table in self.tables if table.oid in meant or not self.follows)


def gather_facts(
    conn: SourceSession,
    pipeline: Pipeline,
    *,
    reader: SourceSession | None = None,
    schedule_seconds: int | None,
    own_slot: bool,
) -> Asked:
    """Ask the source all that the rules need; raises SourceError."""
    role = conn.record(Role, "preflight/role", other=None)
    slots = slot.all_slots(conn)
    found = catalog_snapshot.read_catalog(conn, pipeline.publication, patterns=pipeline.tables)
    wanted = found.chosen
    tables = wanted if found.publication is None else found.tables
    relations = {
        *(table.oid for table in (*tables, *wanted)),
        *(leaf.oid for table in tables for leaf in table.leaves),
    }
    joining = {table.oid for table in wanted} - {table.oid for table in found.tables}
    refused = refusals.read_refusals(conn, pipeline.publication, joining=joining, publish=pipeline.source.publish)
    oids = sorted(relations)
    settings = [row for each in (conn, reader) if each for row in each.rows("preflight/settings", names=list(WANTED))]
    return Asked(
        pipeline=pipeline,
        schedule_seconds=schedule_seconds,
        own_slot=own_slot,
        server=server_info.read_server(conn),
        role=role,
        slots=slots,
        own=next((each for each in slots if each.name == pipeline.slot), None),
        blockers=server_info.open_now(conn),
        publication=found.publication,
        choice=choose(found.relations, pipeline.tables),
        wanted=wanted,
        tables=tables,
        privileges=conn.records(Privileges, "preflight/privileges", oids=oids),
        reader=reader.record(Role, "preflight/role", other=role.name) if reader else None,
        reads=(reader or conn).records(Privileges, "preflight/privileges", oids=oids),
        unpinned=settings,
        foreign=[(writer, relation) for writer, relation in conn.rows("preflight/foreign_rows")],
        ddl_trigger=ddl_trigger.read_trigger(conn) if pipeline.source.ddl_trigger else None,
        refused=refusals.by_table(refused),
    )
