"""The publication, how it publishes, and that it follows the patterns: a table that matches joins it, one that matches no more leaves it.

Only a publication that Penstock made and still owns is altered. For any other the statement is reported to the owner, once.
No table joins that would then refuse the application's updates, and a pattern that matches nothing takes none out.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.config.model import CHANGES, Pipeline
from penstock.errors import SourceError
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.ledger.records import Publishing
from penstock.shapes.source_table import SourceTable
from penstock.source import publication
from penstock.source.catalog import Relation
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.preflight.findings import names
from penstock.source.preflight.table_rules import unfit
from penstock.source.publication import PublicationFacts
from penstock.source.session import SourceSession

KINDS = (*CHANGES, "via_root")
_SAID = {"via_root": "changes of partitions under their root's name", "generated": "stored generated columns"}


@dataclass(frozen=True, slots=True)
class Notice:
    """Say which table the patterns choose, or leave out, without effect, and why."""

    slug: str
    message: str
    oid: int | None = None


@dataclass(frozen=True, slots=True)
class Alteration:
    """Hold how the publication differs from what the patterns choose, and why it is not ours to alter, None where it is."""

    missing: Sequence[SourceTable]
    extra: Sequence[Relation]
    notices: Sequence[Notice]
    blocker: str | None

    @property
    def tables(self) -> int:
        """Count the tables that are to join or leave."""
        return len(self.missing) + len(self.extra)

    def statements(self, name: str) -> str:
        """Return what its owner would run."""
        steps = [publication.add_statement(name, self.missing)] if self.missing else []
        steps += [publication.remove_statement(name, self.extra)] if self.extra else []
        return "; ".join(steps)


def follow_patterns(ctx: Context, conn: SourceSession, found: CatalogSnapshot, *, on_standby: bool) -> bool:
    """Alter the publication as the patterns say where that is ours to do, else say once what to run; return whether it was."""
    decided = decide(ctx.pipeline, found, on_standby=on_standby)
    if decided is None:
        return False
    for notice in decided.notices:
        table_status.warn(ctx, notice.slug, notice.message, notice.oid)
    rest = decided if decided.blocker else _alter(ctx, conn, decided, found.owned)
    _report(ctx, rest)
    return rest.tables < decided.tables


def decide(pipeline: Pipeline, found: CatalogSnapshot, *, on_standby: bool) -> Alteration | None:
    """Hold the publication against what the patterns choose; None where it was not looked for. Pure."""
    facts, choice = found.publication, found.choice
    if facts is None or choice is None:
        return None
    blocker = _blocker(pipeline, facts, on_standby=on_standby)
    if "via_root" not in facts.sent and any(relation.kind == "p" for relation in choice.chosen):
        # it shows partitions, the patterns choose their roots: the preflight says so
        return Alteration((), (), (), blocker)
    wanted = {relation.oid for relation in choice.chosen}
    extra = tuple(each for each in found.relations if each.oid in found.listed and each.oid not in wanted)
    missing, notices = list[SourceTable](), list[Notice]()
    for table in found.candidates:
        if problem := unfit(table, facts, found.refused):
            slug, reason, step = problem
            text = f"{table.qualified} matches tables.include and is not published, because {reason}; {step}, or exclude it"
            notices.append(Notice(slug, text, table.oid))
        else:
            missing.append(table)
    if extra and choice.unmatched_include:
        left = names(each.qualified for each in extra)
        text = f"{publication.no_match(choice)}; until then these stay in the publication: {left}"
        notices.append(Notice("no-matching-tables", text))
    # a pattern without effect, a misspelt one perhaps, keeps every table where it is
    return Alteration(missing, () if choice.unmatched_include else extra, notices, blocker)


def _blocker(pipeline: Pipeline, facts: PublicationFacts, *, on_standby: bool) -> str | None:
    """Say why the publication is not ours to alter."""
    if pipeline.source.adopt or not facts.made_for(pipeline.name):
        return "it was not made by Penstock"
    if on_standby:
        return "a standby cannot alter it"
    return None if facts.owned else "this role does not own it"


def _alter(ctx: Context, conn: SourceSession, found: Alteration, owned: Collection[int]) -> Alteration:
    """Let tables join and leave, one statement each; return the rest, and why they could not."""
    name = ctx.pipeline.publication
    missing = [table for table in found.missing if table.oid not in owned]
    extra: list[Relation] = []
    reasons = ["this role does not own every table"] if missing else []
    for table in (table for table in found.missing if table.oid in owned):
        error = _tried(ctx, publication.add_statement(name, [table]), partial(publication.add, conn, name, [table]))
        if error is not None and error.slug == "no-usable-identity":  # the look before did not show it yet
            table_status.warn(ctx, error.slug, error.message, table.oid)
        elif error is not None:
            missing.append(table)
            reasons.append(error.message)
    for relation in found.extra:
        statement = publication.remove_statement(name, [relation])
        if error := _tried(ctx, statement, partial(publication.alter, conn, statement)):
            extra.append(relation)
            reasons.append(error.message)
    return Alteration(missing, extra, (), "; ".join(dict.fromkeys(reasons)) or None)


def _tried(ctx: Context, statement: str, run: Callable[[], None]) -> SourceError | None:
    """Run a statement and return why it failed: capture continues, and the next run tries again."""
    try:
        run()
    except SourceError as error:
        return error
    ctx.progress(statement)
    return None


def _report(ctx: Context, found: Alteration) -> None:
    name = ctx.pipeline.publication
    if not found.tables:
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
        f"Penstock could not alter it ({found.blocker}): let its owner run: {found.statements(name)}"
    )
    table_status.warn(ctx, "publication-differs", message)


def _listed(what: str, tables: Iterable[str]) -> str:
    found = names(tables)
    return f"{what} {found}" if found else ""


def publishing_of(found: PublicationFacts, before: Publishing | None, meant: Collection[str]) -> Publishing:
    """Return what the ledger keeps of a publication: what it has ever sent is promised, as far as it is meant to be."""
    promised = {*found.sent, *(before.promised if before else ())} & {*meant, "via_root"}
    return Publishing(
        stamp=found.stamp,
        owner=found.owner,
        sent=tuple(found.sent),
        promised=tuple(kind for kind in KINDS if kind in promised),
        generated=found.generated,
    )


def changed(before: Publishing, now: Publishing) -> str:
    """Say what an alteration may have kept out of the stream, and what it does keep out."""
    lost = [kind for kind in before.sent if kind not in now.sent]
    won = [kind for kind in now.sent if kind not in before.sent]
    if before.generated != now.generated:
        (lost if before.generated else won).append("generated")
    if lost:
        return f"it does not send {kinds_text(lost)} any more; what was not sent is in no window"
    if won:
        return f"it sends {kinds_text(won)} again, or for the first time; what was not sent before is in no window"
    other = "; its owner is another" if before.owner != now.owner else ""
    return (
        f"it shows the options that it had{other}; meanwhile it may have left out any kind of change "
        f"({kinds_text(KINDS)}), which is then in no window. PostgreSQL keeps the version of its last alteration only: a new owner or "
        "a new name alone looks the same as options that were changed and changed back; who knows that it was only that may "
        "resume the tables before they are copied"
    )


def kinds_text(kinds: Sequence[str]) -> str:
    """Name kinds of change in a sentence."""
    return names(_SAID.get(kind, f"{kind}s") for kind in kinds)
