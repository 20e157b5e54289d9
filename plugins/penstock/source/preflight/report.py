"""What a preflight asks and what it finds.

`Asked` holds every answer of the source that a rule may need; a rule is a pure function from it to findings.
A finding is one expectation that was met or not, with the next step for whoever has to act.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from psycopg import sql

from penstock.config.model import Pipeline
from penstock.shapes.source_table import SourceTable
from penstock.source.ddl_trigger import DdlTrigger
from penstock.source.patterns import Choice
from penstock.source.publication import PublicationFacts
from penstock.source.refusals import Refusal
from penstock.source.server_info import OpenTransaction, ServerFacts
from penstock.source.slot import SlotFacts

Level = Literal["ok", "warn", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Say how one expectation stands; `slug` is the kind of error that it would be, and names its runbook.

    `subject` is what was looked at, `message` says what was expected and what came. An error forbids a bootstrap.
    """

    level: Level
    slug: str
    subject: str
    message: str
    next_step: str | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """Hold what our role may do on the server, and how many WAL senders are taken."""

    name: str
    replication: bool
    superuser: bool
    database: str
    started: str
    create_in_database: bool
    senders: int


@dataclass(frozen=True, slots=True)
class Reader:
    """Hold who reads tables, where that connection leads, and what the role may do besides."""

    name: str
    database: str
    started: str
    beyond: Sequence[str]


@dataclass(frozen=True, slots=True)
class Privileges:
    """Hold what our role may do with one relation; `narrowed`: row-level security would hide rows from it."""

    oid: int
    schema: str
    name: str
    usage: bool
    select: bool
    narrowed: bool
    owned: bool


@dataclass(frozen=True, slots=True)
class ForeignRows:
    """Name what writes rows of another server, into this relation, or anywhere where that is not known."""

    writer: str
    relation: int | None


@dataclass(frozen=True, slots=True)
class Asked:
    """Hold the pipeline and all that the source answered.

    `ddl_trigger` is the event trigger, None where the pipeline does not ask for it. `reader` is the role that reads tables,
    None where the pipeline names none; `reads` is what it may do, or else our role. `unpinned` are settings that we may not
    change: role, name, value.
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
    foreign: Sequence[ForeignRows] = ()
    ddl_trigger: DdlTrigger | None = None
    reader: Reader | None = None
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


def ok(subject: str, message: str) -> Finding:
    """Report an expectation that was met."""
    return Finding("ok", "preflight-failed", subject, message)


def warn(subject: str, message: str, next_step: str, slug: str = "preflight-failed") -> Finding:
    """Report what may hurt later."""
    return Finding("warn", slug, subject, message, next_step)


def error(subject: str, message: str, next_step: str, slug: str = "preflight-failed") -> Finding:
    """Report what forbids a bootstrap."""
    return Finding("error", slug, subject, message, next_step)


def names(found: Iterable[str]) -> str:
    """List names in a message."""
    return ", ".join(found)


def quoted(*name: str) -> str:
    """Quote a name as an identifier of SQL."""
    return sql.Identifier(*name).as_string(None)
