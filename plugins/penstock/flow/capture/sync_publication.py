"""The publication follows the patterns: a table that matches joins it, one that matches no more leaves it.

Only a publication that Penstock made and still owns is altered. For any other the statement is reported to the owner, once.
No table joins that would then refuse the application's updates, and a pattern that matches nothing takes none out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.errors import SourceError
from penstock.flow.context import Context
from penstock.source import catalog, publication
from penstock.source.catalog import Published, Relation
from penstock.source.patterns import Choice, choose
from penstock.source.preflight.report import Privileges, names
from penstock.source.preflight.table_rules import unfit
from penstock.source.publication import PublicationFacts
from penstock.source.server_info import ServerFacts
from penstock.source.session import SourceSession
from penstock.source.tables import SourceTable


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold how the publication differs from what the patterns choose."""

    missing: tuple[SourceTable, ...]
    extra: tuple[Relation, ...]

    def statements(self, name: str) -> str:
        """Return what its owner would run."""
        steps = [publication.add_statement(name, self.missing)] if self.missing else []
        steps += [publication.remove_statement(name, self.extra)] if self.extra else []
        return "; ".join(steps)


def follow_patterns(ctx: Context, conn: SourceSession, server: ServerFacts) -> None:
    """Hold the publication against the patterns; alter it where that is ours to do, else say once what to run."""
    facts = publication.read(conn, ctx.pipeline.publication)
    if facts is None:  # capture has found it a moment ago, and looks again after the window
        return
    found = _difference(ctx, conn, facts)
    blocker = _blocker(ctx, facts, server)
    if blocker is None:
        blocker, found = _alter(ctx, conn, found)
    _tell(ctx, found, blocker)


def _difference(ctx: Context, conn: SourceSession, facts: PublicationFacts) -> Difference:
    """Compare by oid, and read in full only the tables that differ."""
    relations = catalog.relations(conn)
    choice = choose(relations, ctx.pipeline.tables)
    there = catalog.published_oids(conn, ctx.pipeline.publication)
    if not facts.via_root and any(relation.kind == "p" for relation in choice.chosen):
        return Difference((), ())  # it shows partitions, the patterns choose their roots: the preflight says so
    wanted = {relation.oid for relation in choice.chosen}
    missing = catalog.describe(conn, dict.fromkeys(wanted - there.keys(), Published()), sizes=False)
    fit = [table for table in missing if not _refused(ctx, table, facts)]
    extra = [each for each in relations if there.get(each.oid) and each.oid not in wanted]
    return Difference(tuple(fit), () if _keeps_all(ctx, choice, extra) else tuple(extra))


def _refused(ctx: Context, table: SourceTable, facts: PublicationFacts) -> bool:
    """Return whether a table must not join, and note why."""
    found = unfit(table, facts)
    if found is not None:
        slug, reason, step = found
        message = (
            f"{table.qualified} matches tables.include and is not published, because {reason}; {step}, or exclude it"
        )
        _note(ctx, slug, message, table.oid)
    return found is not None


def _keeps_all(ctx: Context, choice: Choice, extra: Sequence[Relation]) -> bool:
    """Return whether a pattern without effect, a misspelt one perhaps, keeps every table where it is."""
    if extra and choice.unmatched_include:
        left = names(each.qualified for each in extra)
        message = f"{publication.no_match(choice)}; until then these stay in the publication: {left}"
        _note(ctx, "no-matching-tables", message)
    return bool(choice.unmatched_include)


def _blocker(ctx: Context, facts: PublicationFacts, server: ServerFacts) -> str | None:
    """Say why the publication is not ours to alter."""
    if ctx.pipeline.source.adopt or not facts.made_for(ctx.name):
        return "it was not made by Penstock"
    if server.in_recovery:
        return "a standby cannot alter it"
    return None if facts.owned else "this role does not own it"


def _alter(ctx: Context, conn: SourceSession, found: Difference) -> tuple[str | None, Difference]:
    """Let tables join and leave, one statement each; return why the rest could not, and the rest."""
    name = ctx.pipeline.publication
    rights = conn.records(Privileges, "preflight/privileges", oids=[table.oid for table in found.missing])
    owned = {each.oid for each in rights if each.owned}
    missing = [table for table in found.missing if table.oid not in owned]
    extra: list[Relation] = []
    reasons = ["this role does not own every table"] if missing else []
    for table in (table for table in found.missing if table.oid in owned):
        if reason := _tried(ctx, conn, publication.add_statement(name, [table])):
            missing.append(table)
            reasons.append(reason)
    for relation in found.extra:
        if reason := _tried(ctx, conn, publication.remove_statement(name, [relation])):
            extra.append(relation)
            reasons.append(reason)
    return "; ".join(dict.fromkeys(reasons)) or None, Difference(tuple(missing), tuple(extra))


def _tried(ctx: Context, conn: SourceSession, statement: str) -> str | None:
    """Run a statement and return why it failed: capture continues, and the next run tries again."""
    try:
        publication.alter(conn, statement)
    except SourceError as error:
        return error.message
    ctx.progress(statement)
    return None


def _tell(ctx: Context, found: Difference, blocker: str | None) -> None:
    name = ctx.pipeline.publication
    if not (found.missing or found.extra):
        ctx.ledger.events.add_on_change(
            ctx.name,
            slug="publication-differs",
            message=f"publication {name} publishes what the patterns choose",
            first=False,
        )
        return
    lacks = _listed("it lacks", (table.qualified for table in found.missing))
    beyond = _listed("it has beyond them", (relation.qualified for relation in found.extra))
    message = (
        f"expected publication {name} to publish what the patterns choose, but {' and '.join(filter(None, (lacks, beyond)))}; "
        f"Penstock could not alter it ({blocker}): let its owner run: {found.statements(name)}"
    )
    _note(ctx, "publication-differs", message)


def _listed(what: str, tables: Iterable[str]) -> str:
    found = names(tables)
    return f"{what} {found}" if found else ""


def _note(ctx: Context, slug: str, message: str, oid: int | None = None) -> None:
    if ctx.ledger.events.add_on_change(ctx.name, slug=slug, level="warning", message=message, table_oid=oid):
        ctx.progress(f"[{slug}] {message}")
