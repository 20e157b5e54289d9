"""What a resync or a replay is asked for, held against what is there, before any work: bad input ends here.

A dry run is this look, told line by line.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import ConfigError, SourceError
from penstock.flow.context import Context
from penstock.flow.drift import table_facts
from penstock.flow.rebuild_copy import published
from penstock.ledger.rebuilds import NewRebuild
from penstock.ledger.records import TableFacts, TableRecord
from penstock.lsn import Lsn


@dataclass(frozen=True, slots=True)
class Replay:
    """Ask for a replay: of which tables, from and up to where, and into what; None is everything, or now, or in place."""

    tables: tuple[str, ...]
    from_: str | None = None
    upto: str | None = None
    shadow: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Say what one table would be built from."""

    facts: TableFacts
    place: tuple[str, ...]
    copy_id: str
    goal: Lsn | None

    def order(self, rebuild_id: str) -> NewRebuild:
        """Return the order to build it."""
        kind = "replay" if self.goal is None else "shadow"
        return NewRebuild(rebuild_id, kind, self.facts, self.place, self.copy_id, self.goal)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Say what a replay would do, for a person to read."""

    sources: tuple[Source, ...]
    lines: tuple[str, ...]


def look(ctx: Context, request: Replay) -> Outlook:
    raise NotImplementedError


def to_copy(ctx: Context, tables: Sequence[str] | None) -> list[TableRecord]:
    """Return the tables to copy: those named, or all that are new; raises ConfigError("table-unknown")."""
    known = [record for record in ctx.ledger.tables(ctx.name) if record.state != "dropped"]
    if tables is None:
        return [record for record in known if record.state == "new"]
    return named(known, tables)


def named(known: Sequence[TableRecord], tables: Sequence[str]) -> list[TableRecord]:
    """Return the tables of these names, each once; raises ConfigError("table-unknown") with the nearest name."""
    by_name = {f"{record.schema}.{record.name}": record for record in known}
    for table in tables:
        if table not in by_name:
            nearest = difflib.get_close_matches(table, by_name, n=1, cutoff=0.5)
            hint = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(sorted(by_name)) or 'none'}"
            raise ConfigError("table-unknown", f"expected a table of the pipeline as schema.table, got {table}; {hint}")
    return [by_name[table] for table in dict.fromkeys(tables)]


def present_facts(ctx: Context, oids: Sequence[int]) -> dict[int, TableFacts]:
    """Return what the source says of these tables now; raises SourceError("table-unpublished")."""
    now = published(ctx)
    for oid in oids:
        if oid not in now:
            name = next(f"{each.schema}.{each.name}" for each in ctx.ledger.tables(ctx.name) if each.oid == oid)
            raise SourceError(
                "table-unpublished",
                f"expected {name} in publication {ctx.pipeline.publication}, but it was dropped or left it; "
                "add it to the publication again, then resync it",
            )
    return {oid: table_facts(ctx, now[oid]) for oid in oids}
