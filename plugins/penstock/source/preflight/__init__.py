"""The preflight: is the source ready for a pipeline? It asks, and changes nothing.

The publication and the slot that the pipeline wants need not exist yet: then what would be made is checked.
`RULES` is the whole list of what is looked at.
"""

from penstock.config.model import Pipeline
from penstock.source.preflight import publication_rules, server_rules, table_rules
from penstock.source.preflight.asked import Asked, gather_facts
from penstock.source.preflight.findings import Finding, in_words
from penstock.source.session import SourceSession

RULES = (
    server_rules.version,
    server_rules.settings,
    server_rules.wal_keep_size,
    server_rules.idle_timeout,
    server_rules.role,
    server_rules.reader,
    server_rules.unpinned,
    server_rules.slots,
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

    `reader` is a session of the role that reads tables, if it is another one. `schedule_seconds` is the time between two captures;
    `own_slot` says that a slot that exists is known to be ours.
    """
    return judge(gather_facts(conn, pipeline, reader=reader, schedule_seconds=schedule_seconds, own_slot=own_slot))


def judge(asked: Asked) -> list[Finding]:
    """Return what the rules find in the source's answers, errors first."""
    findings = (in_words(found, asked) for rule in RULES for found in rule(asked))
    return sorted(findings, key=lambda finding: _ORDER.index(finding.level))
