"""The preflight's rules for the patterns and the publication. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from penstock.config.model import CHANGES
from penstock.shapes.source_table import SourceTable
from penstock.source.preflight.report import Asked, Finding, error, names, ok, quoted, warn
from penstock.source.preflight.table_rules import unfit
from penstock.source.publication import PublicationFacts, add_statement, create_statement, no_match
from penstock.units import several


def patterns(asked: Asked) -> Iterator[Finding]:
    """Check that every pattern had an effect, and name what was left out."""
    choice = asked.choice
    if choice.unmatched_include:
        yield error("tables.include", no_match(choice), "correct the patterns, or the connection", "no-matching-tables")
    elif not choice.chosen:
        yield warn(
            "tables.include",
            f"expected tables, but database {asked.server.database} has none yet that is chosen; each joins when it is made",
            "nothing to do if that is the right database",
            "no-matching-tables",
        )
    if choice.unmatched_exclude:
        yield warn(
            "tables.exclude",
            f"expected every pattern to match something, got nothing for {names(choice.unmatched_exclude)}",
            "a misspelt exclusion lets a table through: correct or remove it",
            "no-matching-tables",
        )
    if choice.inseparable:
        yield error(
            "tables.exclude",
            "expected to exclude whole tables, got partitions of a chosen one: "
            f"{names(each.qualified for each in choice.inseparable)}; their rows come with the partitioned table",
            "exclude the partitioned table, and include the partitions that are wanted",
        )
    by_reason: dict[str, list[str]] = defaultdict(list)
    for each in choice.left_out:
        by_reason[each.reason].append(each.qualified)
    for reason, left_out in by_reason.items():
        yield warn(
            "tables.include",
            f"expected tables whose changes are in the WAL; left out, each {reason}: {names(left_out)}",
            "nothing to do if they are not wanted; else make them ordinary logged tables",
        )


def publication(asked: Asked) -> Iterator[Finding]:
    """Check that the publication is the pipeline's, or can be made in time."""
    subject, pipeline = _subject(asked), asked.pipeline
    if asked.publication is not None:
        if not (pipeline.source.adopt or asked.publication.made_for(pipeline.name)):
            yield error(
                subject,
                "expected none of this name, or one made for this pipeline, but there is another",
                "set source.adopt: true to take it over, or choose another source.publication",
            )
    elif asked.server.in_recovery:
        yield error(
            subject,
            "expected it to exist, because on a standby none can be made",
            f"let the owner run on the primary: {_making(asked)}",
            "publication-missing",
        )
    elif asked.own is not None:
        yield error(
            subject,
            f"expected it to be older than slot {asked.own.name}, but it does not exist",
            "drop the slot and let bootstrap make both; what the slot has not confirmed cannot be decoded",
            "publication-missing",
        )
    elif not _rights_lacking(asked):
        yield ok(subject, f"does not exist, bootstrap will make it for {several(len(asked.wanted), 'table')}")


def membership(asked: Asked) -> Iterator[Finding]:
    """Check that the publication has the tables that the patterns choose, or that capture will see to it."""
    if asked.publication is None or not _shows_roots(asked):
        return
    subject = _subject(asked)
    there, meant = {table.oid for table in asked.tables}, {table.oid for table in asked.wanted}
    missing = [
        table for table in asked.wanted if table.oid not in there and not unfit(table, asked.publication, asked.refused)
    ]
    extra = [table.qualified for table in asked.tables if table.oid not in meant]
    if _follows(asked, missing):
        if late := [table.qualified for table in missing] + extra:
            yield warn(
                subject,
                f"expected it to publish exactly what tables.include chooses, but it differs by {names(late)}",
                "nothing to do: the next capture lets them join or leave",
                "publication-differs",
            )
            return
    elif missing:
        yield error(
            subject,
            f"expected it to publish what tables.include chooses, but it lacks {names(t.qualified for t in missing)}",
            f"narrow the patterns, or let the owner run: {add_statement(asked.pipeline.publication, missing)}",
        )
    if extra:
        yield warn(
            subject,
            f"it publishes more than tables.include chooses, and that is mirrored too: {names(extra)}",
            "widen the patterns, or let the owner drop them from the publication",
        )
    if not missing and not extra:
        yield ok(subject, f"publishes what is chosen: {several(len(there), 'table')}")


def options(asked: Asked) -> Iterator[Finding]:
    """Check how the publication publishes."""
    facts, subject = asked.publication, _subject(asked)
    if facts is None:
        return
    yield from _kinds(asked, facts)
    if facts.all_tables:
        yield warn(
            subject,
            "expected a list of tables, got FOR ALL TABLES: "
            "any new table without a key refuses the application's updates from its first day",
            "publish a list of tables instead",
        )
    if not _shows_roots(asked):
        step = f"alter publication {quoted(asked.pipeline.publication)} set (publish_via_partition_root = true)"
        roots = names(table.qualified for table in asked.wanted if table.kind == "p")
        yield error(
            subject,
            f"expected publish_via_partition_root = true for the partitioned tables {roots}",
            f"let the owner run: {step}",
        )


def _kinds(asked: Asked, facts: PublicationFacts) -> Iterator[Finding]:
    """Hold the kinds of change that are published against those that are meant."""
    subject, meant = _subject(asked), asked.pipeline.source.publish
    silent = [kind for kind in meant if kind not in facts.sent]
    more = [kind for kind in CHANGES if kind in facts.sent and kind not in meant]
    if silent:
        yield warn(
            subject,
            f"expected every kind of change that source.publish names, but it does not publish {names(silent)}: "
            "the lake will not show them",
            "let the owner widen it; or, if it is meant to be so, name in source.publish what it publishes; docs/runbooks/publication-narrow.md",
        )
    if more:
        yield warn(
            subject,
            f"expected only what source.publish names, but it publishes {names(more)} besides, which is merged as well",
            "add them to source.publish, or let the owner narrow the publication",
        )
    if not silent and not more and len(meant) < len(CHANGES):
        yield ok(subject, f"publishes {names(meant)} only, as source.publish says: the lake shows nothing else")


def origins(asked: Asked) -> Iterator[Finding]:
    """Warn of rows that another server writes: copies take them, and their later changes are left out."""
    source = asked.pipeline.source
    if source.origin != "none" and not source.skip_origins:
        return
    subject = "source.origin" if source.origin == "none" else "source.skip_origins"
    filled = {leaf.oid: table for table in asked.tables for leaf in table.leaves}
    filled |= {table.oid: table for table in asked.tables}
    writers = [
        f"{each.writer} writes {filled[each.relation].qualified if each.relation is not None else 'tables that it does not name'}"
        for each in asked.foreign
        if each.relation is None or each.relation in filled
    ]
    if not writers:
        yield ok(
            subject, "no subscription of this database fills one of the tables, and the server has no other origin"
        )
        return
    yield warn(
        subject,
        "expected no table to have rows that another server wrote: a copy takes them, and their later changes are left out, "
        f"so the lake keeps them as they are now; {names(dict.fromkeys(writers))}",
        "exclude these tables, give them a row filter that leaves such rows out, or let their changes through",
    )


def age(asked: Asked) -> Iterator[Finding]:
    """Check that the publication was there before any WAL that the slot still has to read."""
    facts, slot = asked.publication, asked.own
    if facts is None or slot is None or slot.catalog_xmin_age is None or facts.age > slot.catalog_xmin_age:
        return
    report = warn if asked.own_slot else error  # of a slot of ours bootstrap saw to that; the publication was altered
    yield report(
        _subject(asked),
        "expected it to be older than what the slot still has to read, but it was made or altered since: "
        "WAL from before the publication existed cannot be decoded",
        "if it was made after the slot, drop the slot and let bootstrap make one",
        "publication-missing",
    )


def may_publish(asked: Asked) -> Iterator[Finding]:
    """Check that our role may make the publication that does not exist yet."""
    if asked.publication is None and (missing := _rights_lacking(asked)):
        yield error(
            _subject(asked),
            f"expected role {quoted(asked.role.name)} to be allowed to make it, but it lacks {' and '.join(missing)}",
            f"let the owner run: {_making(asked)}",
            "source-auth",
        )


def _rights_lacking(asked: Asked) -> list[str]:
    """Name the rights that our role lacks to make the publication of the chosen tables."""
    if asked.choice.unmatched_include and not asked.wanted:
        return []
    owned = {each.oid for each in asked.privileges if each.owned}
    foreign = [table.qualified for table in asked.wanted if table.oid not in owned]
    return [
        *([] if asked.role.create_in_database else ["CREATE on the database"]),
        *([f"ownership of {names(foreign)}"] if foreign else []),
    ]


def _making(asked: Asked) -> str:
    """Return the statement that makes the publication, and what is to be set besides so that the pipeline takes it."""
    source = asked.pipeline.source
    statement = create_statement(asked.pipeline.publication, asked.wanted, source.publish)
    return statement if source.adopt else f"{statement}; and set source.adopt: true"


def _follows(asked: Asked, missing: Iterable[SourceTable]) -> bool:
    """Return whether capture will let these tables join: the publication is ours, and so are they."""
    owned = {each.oid for each in asked.privileges if each.owned}
    return asked.follows and all(table.oid in owned for table in missing)


def _subject(asked: Asked) -> str:
    return f"publication {asked.pipeline.publication}"


def _shows_roots(asked: Asked) -> bool:
    via_root = asked.publication is None or asked.publication.via_root
    return via_root or all(table.kind == "r" for table in asked.wanted)
