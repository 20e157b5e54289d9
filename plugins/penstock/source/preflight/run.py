"""The preflight: is the source ready for a pipeline? It asks, and changes nothing.

The publication and the slot that the pipeline wants need not exist yet: then what would be made is checked.
`RULES` is the whole list of what is looked at.
"""

from __future__ import annotations

from penstock.config.model import Pipeline
from penstock.source import catalog_snapshot, ddl_trigger, refusals, server_info, slot
from penstock.source.patterns import choose
from penstock.source.preflight import publication_rules, role_rules, server_rules, table_rules
from penstock.source.preflight.report import Asked, Finding, ForeignRows, Privileges, Reader, Role
from penstock.source.session import SourceSession

__all__ = ["RULES", "Finding", "check"]

RULES = (
    server_rules.version,
    server_rules.wal_level,
    server_rules.settings,
    server_rules.wal_keep_size,
    server_rules.idle_timeout,
    server_rules.role,
    role_rules.reader,
    role_rules.unpinned,
    server_rules.free_slots,
    server_rules.slot,
    server_rules.blockers,
    server_rules.large_rows,
    server_rules.ddl_trigger,
    publication_rules.patterns,
    publication_rules.publication,
    publication_rules.membership,
    publication_rules.options,
    publication_rules.origins,
    publication_rules.age,
    publication_rules.may_publish,
    table_rules.may_read,
    table_rules.identities,
    table_rules.names_of_objects,
    table_rules.arrays,
    table_rules.contents,
    table_rules.targets,
    table_rules.partitions,
)
_ORDER = ("error", "warn", "ok")


def check(
    conn: SourceSession,
    pipeline: Pipeline,
    *,
    reader: SourceSession | None = None,
    schedule_seconds: int | None = None,
    own_slot: bool = False,
) -> list[Finding]:
    """Return every finding, the good ones too, errors first; raises SourceError when the source cannot be asked.

    `reader` is a session of the role that reads tables, if it is another one. `schedule_seconds` is the time between two captures; `own_slot` says that a slot that exists is known to be ours.
    """
    asked = gather_facts(conn, pipeline, reader=reader, schedule_seconds=schedule_seconds, own_slot=own_slot)
    findings = (finding for rule in RULES for finding in rule(asked))
    return sorted(findings, key=lambda finding: _ORDER.index(finding.level))


def gather_facts(
    conn: SourceSession,
    pipeline: Pipeline,
    *,
    reader: SourceSession | None = None,
    schedule_seconds: int | None,
    own_slot: bool,
) -> Asked:
    """Ask the source all that the rules need; raises SourceError."""
    (role,) = conn.records(Role, "preflight/role")
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
    settings = [
        row
        for each in (conn, reader)
        if each
        for row in each.rows("preflight/settings", names=role_rules.asked_settings())
    ]
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
        reader=reader.records(Reader, "preflight/reader", role=role.name)[0] if reader else None,
        reads=(reader or conn).records(Privileges, "preflight/privileges", oids=oids),
        unpinned=settings,
        foreign=conn.records(ForeignRows, "preflight/foreign_rows"),
        ddl_trigger=ddl_trigger.read_trigger(conn) if pipeline.source.ddl_trigger else None,
        refused=refusals.by_table(refused),
    )
